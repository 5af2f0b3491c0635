//! `atlasctl import loki`: the agents of a configuration folder of Loki.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use atlas_contract::yaml::{Budget, load_core};
use atlas_package::{CONFIG_FILE, GRAPH_FILE, GraphFolder, PackFile, Package, TOOLS_FOLDER};
use serde_json::{Value, json};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words;

/// The index that Loki makes of documents.
const INDEX_FILE: &str = "rag.yaml";

/// Most bytes of a global tool.
const TOOL_BYTES_MAX: u64 = 1 << 20;

/// Options of `atlasctl import loki`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The configuration folder of Loki, which has the folders agents and functions.
    folder: PathBuf,
    /// Check and pack, without registering.
    #[arg(long)]
    dry_run: bool,
}

/// What a folder has.
#[derive(Default)]
struct Found {
    packages: Vec<Package>,
    /// What was not taken over: where, and why.
    left: Vec<(String, String)>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let found = read(&options.folder)?;
    if !options.dry_run {
        let client = context.client()?;
        for package in &found.packages {
            client.upload(&["api", "agents"], package.bytes.clone()).await?;
        }
    }
    let label = |package: &Package| (package.contract.name.to_string(), package.contract.version.to_string());
    let labels: Vec<(String, String)> = found.packages.iter().map(label).collect();
    let mut text: String = labels.iter().map(|(name, version)| format!("{name} {version}\n")).collect();
    text.extend(found.left.iter().map(|(place, why)| format!("not taken: {place}: {why}\n")));
    let agents: Vec<Value> = labels.iter().map(|(name, version)| json!({"name": name, "version": version})).collect();
    let left: Vec<Value> = found.left.iter().map(|(place, why)| json!({"place": place, "reason": why})).collect();
    let names = labels.iter().map(|(name, _)| format!("agent/{name}")).collect();
    context.show(&Shown { value: json!({"agents": agents, "not_taken": left}), text, names })?;
    Ok(if found.left.is_empty() { Exit::Done } else { Exit::Short })
}

fn read(root: &Path) -> Result<Found, Failure> {
    let agents = root.join("agents");
    if !agents.is_dir() {
        let message = format!("\"{}\" is no configuration folder of Loki: it has no folder agents", root.display());
        return Err(Failure::new("E1105", Exit::Invalid, message).with_next("what is taken: atlasctl docs from-loki"));
    }
    let mut found = Found::default();
    for folder in folders(&agents)? {
        let place = format!("agents/{}", folder.file_name().unwrap_or_default().to_string_lossy());
        match package(root, &folder, &place, &mut found.left) {
            Ok(Some(package)) => found.packages.push(package),
            Ok(None) => found.left.push((place, "it has neither graph.yaml nor config.yaml".to_owned())),
            Err(why) => found.left.push((place, why)),
        }
    }
    if agents.join(".shared").is_dir() {
        let why = "packages have no hidden files; copy what the agents source into their folders";
        found.left.push(("agents/.shared".to_owned(), why.to_owned()));
    }
    for server in servers(&root.join("functions/mcp.json")) {
        let why = "agents that list it need it in the cluster: atlasctl mcp add --from functions/mcp.json".to_owned();
        found.left.push((format!("functions/mcp.json: {server}"), why));
    }
    if root.join("vault.yml").is_file() {
        let why = "import it with its password: atlasctl secret import".to_owned();
        found.left.push(("vault.yml".to_owned(), why));
    }
    Ok(found)
}

/// The folders in a folder, sorted, without hidden ones.
fn folders(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(folder).map_err(|error| words::could_not("read", folder, &error))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let is_hidden = |path: &PathBuf| path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.is_dir() && !is_hidden(path)).collect();
    paths.sort();
    Ok(paths)
}

/// The package of an agent; none if the folder has no definition.
fn package(
    root: &Path,
    folder: &Path,
    place: &str,
    left: &mut Vec<(String, String)>,
) -> Result<Option<Package>, String> {
    let chain = |error: &dyn std::error::Error| atlas_env::chain(error);
    let mut skipped = |what: &str, why: &str| left.push((format!("{place}: {what}"), why.to_owned()));
    let tools = if folder.join(GRAPH_FILE).is_file() {
        GraphFolder::new(folder).read().map_err(|error| chain(&error))?.graph.global_tools
    } else if folder.join(CONFIG_FILE).is_file() {
        let config = atlas_package::config(folder).map_err(|error| chain(&error))?;
        for document in &config.documents {
            if let Err(error) = atlas_documents::files(folder, std::slice::from_ref(document)) {
                skipped("documents", &chain(&error));
            }
        }
        if !config.documents.is_empty() && folder.join(INDEX_FILE).is_file() {
            skipped(INDEX_FILE, "documents are searched by their words, without an index");
        }
        config.unknown.iter().for_each(|name| skipped(name, "Loki has no such member"));
        config.global_tools
    } else {
        return Ok(None);
    };
    let mut files = Vec::new();
    for name in tools {
        match tool(root, &name) {
            Ok(file) => files.push(file),
            // Packing adds it.
            Err(_) if atlas_package::is_packaged_tool(&name) && !root.join(TOOLS_FOLDER).join(&name).exists() => {}
            Err(why) => skipped(&format!("the tool {name}"), &why),
        }
    }
    atlas_package::pack_with_files(folder, files, &|name| std::env::var(name).ok())
        .map(Some)
        .map_err(|error| chain(&error))
}

/// A global tool, as a file of the package of its agent.
fn tool(root: &Path, name: &str) -> Result<PackFile, String> {
    if Path::new(name).file_name().is_none_or(|file| file != name) {
        return Err("it is no file name".to_owned());
    }
    let path = format!("{TOOLS_FOLDER}/{name}");
    let mut bytes = Vec::new();
    let file = fs::File::open(root.join(&path)).map_err(|error| error.to_string())?;
    file.take(TOOL_BYTES_MAX).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok(PackFile { path, bytes, executable: true })
}

/// The names of the MCP servers in a file.
fn servers(path: &Path) -> Vec<String> {
    let text = fs::read(path).unwrap_or_default();
    let value = load_core(&text, Budget::default()).map(|marked| marked.value).unwrap_or_default();
    let servers = value.get("mcpServers").and_then(Value::as_object);
    servers.map(|servers| servers.keys().cloned().collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(files: &[(&str, &str)], expected: &Expect) {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let shown = match read(root.path()) {
            Ok(found) => {
                let packages = found.packages.iter().map(|package| {
                    format!("{} {}: {} files\n", package.contract.name, package.contract.version, package.files)
                });
                let left = found.left.iter().map(|(place, why)| format!("not taken: {place}: {why}\n"));
                packages.chain(left).collect()
            }
            Err(failure) => failure.message.replace(&root.path().display().to_string(), "ROOT"),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn agents_are_taken_with_their_tools() {
        check(
            &[
                ("agents/flow/graph.yaml", "name: f\nstart: e\nnodes:\n  e: {type: end}\n"),
                (
                    "agents/talk/config.yaml",
                    "name: T\nversion: '2'\nglobal_tools: [fs_cat.sh, fs_ls.sh, none.sh, ../x]\ncan_spawn_agents: true\n",
                ),
                ("agents/odd/README.md", ""),
                ("agents/broken/graph.yaml", "name: ["),
                ("agents/.shared/utils.sh", ""),
                ("functions/tools/fs_cat.sh", "# @cmd Reads.\nmain() { :; }\n"),
                ("functions/mcp.json", r#"{"mcpServers": {"github": {}}}"#),
                ("vault.yml", ""),
            ],
            &expect![[r#"
                flow 1.0.0: 2 files
                talk 2.0.0: 5 files
                not taken: agents/broken: graph.yaml cannot be read: the file is not YAML: line 1, column 7: unclosed bracket '['
                not taken: agents/odd: it has neither graph.yaml nor config.yaml
                not taken: agents/talk: the tool none.sh: No such file or directory (os error 2)
                not taken: agents/talk: the tool ../x: it is no file name
                not taken: agents/.shared: packages have no hidden files; copy what the agents source into their folders
                not taken: functions/mcp.json: github: agents that list it need it in the cluster: atlasctl mcp add --from functions/mcp.json
                not taken: vault.yml: import it with its password: atlasctl secret import
            "#]],
        );
    }

    #[test]
    fn documents_in_the_folder_of_the_agent_are_taken() {
        check(
            &[
                (
                    "agents/talk/config.yaml",
                    "name: T\ndocuments: [notes, 'more/*.md', 'https://example.com/x', '../other/a.md', none.md]\n",
                ),
                ("agents/talk/notes/a.md", "a"),
                ("agents/talk/more/b.md", "b"),
                ("agents/talk/rag.yaml", ""),
                ("agents/other/a.md", "a"),
            ],
            &expect![[r#"
                talk 1.0.0: 5 files
                not taken: agents/other: it has neither graph.yaml nor config.yaml
                not taken: agents/talk: documents: "https://example.com/x": documents are not fetched here; put the text into a file of the agent's folder
                not taken: agents/talk: documents: "../other/a.md" leads out of the agent's folder
                not taken: agents/talk: documents: there is no document "none.md" in the agent's folder
                not taken: agents/talk: rag.yaml: documents are searched by their words, without an index
            "#]],
        );
    }

    #[test]
    fn another_folder_is_refused() {
        check(&[("x", "")], &expect![[r#""ROOT" is no configuration folder of Loki: it has no folder agents"#]]);
    }
}
