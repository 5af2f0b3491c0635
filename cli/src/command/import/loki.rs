//! `atlasctl import loki`: the agents of a configuration folder of Loki.

mod rest;

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use atlas_contract::Warning;
use atlas_package::{CONFIG_FILE, GRAPH_FILE, GraphFolder, PackFile, Package, TOOLS_FOLDER};
use serde_json::{Value, json};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::program::{Checker, Findings, Has, RunsOn};
use crate::words;

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
    /// Replace the packages of versions that are registered with other files.
    #[arg(long)]
    replace: bool,
}

/// What a folder has.
#[derive(Default)]
struct Found {
    /// The agents with their folders.
    packages: Vec<(PathBuf, Package)>,
    /// What was not taken over: where, and why.
    left: Vec<(String, String)>,
    /// What does less than it seems to.
    warnings: Vec<Warning>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let mut found = checked(&options.folder).await?;
    if !options.dry_run {
        let client = context.client()?;
        for (_, package) in &found.packages {
            client.register(package.bytes.clone(), options.replace).await?;
        }
        let along = found.packages.iter().map(|(_, package)| package.contract.name.to_string());
        if let Ok(has) = Has::ask(&client, along).await {
            let lacks = found.packages.iter().flat_map(|(folder, package)| {
                let at = place_of(folder);
                has.lacks(folder, &package.contract).into_iter().map(move |warning| warning.in_file(&at))
            });
            found.warnings.extend(lacks);
        }
    }
    let label = |package: &Package| (package.contract.name.to_string(), package.contract.version.to_string());
    let labels: Vec<(String, String)> = found.packages.iter().map(|(_, package)| label(package)).collect();
    let mut text: String = labels.iter().map(|(name, version)| format!("{name} {version}\n")).collect();
    text.extend(found.left.iter().map(|(place, why)| format!("not taken: {place}: {why}\n")));
    text.extend(found.warnings.iter().map(|warning| format!("warning: {warning}\n")));
    let agents: Vec<Value> = labels.iter().map(|(name, version)| json!({"name": name, "version": version})).collect();
    let left: Vec<Value> = found.left.iter().map(|(place, why)| json!({"place": place, "reason": why})).collect();
    let warning = |warning: &Warning| json!({"path": warning.path, "message": warning.message, "hint": warning.hint});
    let warnings: Vec<Value> = found.warnings.iter().map(warning).collect();
    let names = labels.iter().map(|(name, _)| format!("agent/{name}")).collect();
    context.show(&Shown { value: json!({"agents": agents, "not_taken": left, "warnings": warnings}), text, names })?;
    Ok(if found.left.is_empty() { Exit::Done } else { Exit::Short })
}

/// Reads a folder, and leaves out agents whose every job would fail.
async fn checked(root: &Path) -> Result<Found, Failure> {
    let mut found = read(root)?;
    let checker = Checker::new(RunsOn::Workers { tested: false });
    let mut packages = Vec::new();
    for (folder, package) in std::mem::take(&mut found.packages) {
        let Findings { problems, faults, warnings } = checker.check(&folder, &package).await;
        let beside = format!("{}/", root.display());
        let at = |path: &str| path.replace(&beside, "");
        let wrong = problems.iter().chain(&faults).map(|(path, what)| (at(path), what.clone()));
        found.left.extend(wrong);
        found.warnings.extend(warnings.into_iter().map(|warning| Warning { path: at(&warning.path), ..warning }));
        if problems.is_empty() && faults.is_empty() {
            packages.push((folder, package));
        } else {
            found.left.push((place_of(&folder), "each of its jobs would fail; correct it and import again".to_owned()));
        }
    }
    found.packages = packages;
    Ok(found)
}

fn place_of(folder: &Path) -> String {
    format!("agents/{}", folder.file_name().unwrap_or_default().to_string_lossy())
}

fn read(root: &Path) -> Result<Found, Failure> {
    let agents = root.join("agents");
    if !agents.is_dir() {
        let message = format!("\"{}\" is no configuration folder of Loki: it has no folder agents", root.display());
        return Err(Failure::new("E1105", Exit::Invalid, message).with_next("what is taken: atlasctl docs from-loki"));
    }
    let (mut found, mut tools) = (Found::default(), BTreeSet::new());
    for folder in folders(&agents)? {
        match package(root, &folder, &mut tools) {
            Ok(Some(package)) => found.packages.push((folder, package)),
            Ok(None) => found.left.push((place_of(&folder), "it has neither graph.yaml nor config.yaml".to_owned())),
            Err(why) => found.left.push((place_of(&folder), why)),
        }
    }
    rest::list(root, &tools, &mut found.left);
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

/// The package of an agent; none if the folder has no definition. `used` gets the tools that it lists.
fn package(root: &Path, folder: &Path, used: &mut BTreeSet<String>) -> Result<Option<Package>, String> {
    let chain = |error: &dyn std::error::Error| atlas_env::chain(error);
    let tools = if folder.join(GRAPH_FILE).is_file() {
        GraphFolder::new(folder).read().map_err(|error| chain(&error))?.graph.global_tools
    } else if folder.join(CONFIG_FILE).is_file() {
        atlas_package::config(folder).map_err(|error| chain(&error))?.global_tools
    } else {
        return Ok(None);
    };
    // What is missing is found when the package is checked.
    let files = tools.iter().filter_map(|name| tool(root, name).ok().or_else(|| tool(root, &meant(root, name)?).ok()));
    let files = files.collect();
    used.extend(tools);
    atlas_package::pack_with_files(folder, files, &|name| std::env::var(name).ok())
        .map(Some)
        .map_err(|error| chain(&error))
}

/// The file of a tool that is named without its ending or with another one. With it in the package, the check can name it.
fn meant(root: &Path, name: &str) -> Option<String> {
    let wanted = Path::new(name).file_stem()?;
    let entries = fs::read_dir(root.join(TOOLS_FOLDER)).ok()?.flatten();
    let same = entries.map(|entry| entry.path()).find(|path| path.file_stem() == Some(wanted))?;
    Some(same.file_name()?.to_string_lossy().into_owned())
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

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    async fn check(files: &[(&str, &str)], expected: &Expect) {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let shown = match checked(root.path()).await {
            Ok(found) => {
                let packages = found.packages.iter().map(|(_, package)| {
                    format!("{} {}: {} files\n", package.contract.name, package.contract.version, package.files)
                });
                let left = found.left.iter().map(|(place, why)| format!("not taken: {place}: {why}\n"));
                let warnings = found.warnings.iter().map(|warning| format!("warning: {warning}\n"));
                packages.chain(left).chain(warnings).collect()
            }
            Err(failure) => failure.message.replace(&root.path().display().to_string(), "ROOT"),
        };
        expected.assert_eq(&shown);
    }

    const TOOL: &str = "# @describe Reads.\nmain() { :; }\n";

    #[tokio::test]
    async fn agents_are_taken_with_their_tools() {
        check(
            &[
                ("agents/flow/graph.yaml", "name: f\nstart: e\nnodes:\n  e: {type: end}\n"),
                (
                    "agents/talk/config.yaml",
                    "name: T\nversion: '2'\nglobal_tools: [fs_cat.sh, fs_ls.sh]\ncan_spawn_agents: true\nconversation_starters: [hi]\n",
                ),
                ("functions/tools/fs_cat.sh", TOOL),
            ],
            &expect![[r#"
                flow 1.0.0: 2 files
                talk 2.0.0: 5 files
                warning: agents/talk/config.yaml /conversation_starters: has no effect; nothing suggests prompts to people
            "#]],
        )
        .await;
    }

    #[tokio::test]
    async fn agents_whose_jobs_would_fail_are_not_taken() {
        check(
            &[
                ("agents/odd/README.md", ""),
                ("agents/broken/graph.yaml", "name: ["),
                ("agents/talk/config.yaml", "name: T\nglobal_tools: [none.sh, ../x, add]\n"),
                (
                    "agents/reader/config.yaml",
                    "name: T\ndocuments: [notes, 'more/*.md', 'https://example.com/x', '../other/a.md', none.md]\n",
                ),
                ("agents/reader/notes/a.md", "a"),
                ("agents/reader/more/b.md", "b"),
                ("agents/other/a.md", "a"),
                ("functions/tools/add.sh", TOOL),
            ],
            &expect![[r#"
                not taken: agents/broken: graph.yaml cannot be read: the file is not YAML: line 1, column 7: unclosed bracket '['
                not taken: agents/odd: it has neither graph.yaml nor config.yaml
                not taken: agents/other: it has neither graph.yaml nor config.yaml
                not taken: agents/reader/config.yaml /documents/2: "https://example.com/x": documents are not fetched here; put the text into a file of the agent's folder
                not taken: agents/reader/config.yaml /documents/3: "../other/a.md" leads out of the agent's folder
                not taken: agents/reader/config.yaml /documents/4: there is no document "none.md" in the agent's folder
                not taken: agents/reader: each of its jobs would fail; correct it and import again
                not taken: agents/talk/config.yaml /global_tools: "none.sh" in global_tools is no file of functions/tools
                not taken: agents/talk/config.yaml /global_tools: "../x" in global_tools is no file name
                not taken: agents/talk/config.yaml /global_tools: "add" in global_tools is no file of functions/tools; did you mean "add.sh"?
                not taken: agents/talk: each of its jobs would fail; correct it and import again
            "#]],
        )
        .await;
    }

    #[tokio::test]
    async fn all_else_is_listed_with_what_to_do() {
        check(
            &[
                ("agents/.shared/utils.sh", ""),
                ("agents/flow/graph.yaml", "name: f\nstart: e\nnodes:\n  e: {type: end}\n"),
                ("agents/flow/rag.yaml", ""),
                ("agents/flow/sessions/work.yaml", ""),
                ("roles/coder.md", "You write code."),
                ("macros/day.yaml", "steps: [hello]"),
                ("sessions/home.yaml", ""),
                ("rags/papers.yaml", ""),
                ("functions/mcp.json", r#"{"mcpServers": {"github": {}}}"#),
                ("functions/tools/unused.sh", TOOL),
                ("config.yaml", "model: openai:gpt-5\nsave: true\nclients:\n- type: openai\n- {type: openai-compatible, name: local}\n"),
                ("models-override.yaml", ""),
                ("vault.yml", ""),
                ("notes.txt", ""),
            ],
            &expect![[r#"
                flow 1.0.0: 4 files
                not taken: agents/.shared: packages have no hidden files; copy what the agents source into their folders
                not taken: agents/flow/rag.yaml: documents are searched by their words, without an index
                not taken: agents/flow/sessions/work.yaml: conversations begin anew: atlasctl run flow --conversation NAME
                not taken: roles/coder.md: there are no roles: put its text into the instructions of an agent, atlasctl init NAME
                not taken: macros/day.yaml: there are no macros: write a chain, atlasctl docs chains, or a script with commands of atlasctl
                not taken: sessions/home.yaml: conversations begin anew: atlasctl run AGENT --conversation NAME
                not taken: rags/papers.yaml: a base is imported by itself: atlasctl rag import FILE
                not taken: functions/mcp.json: github: agents that list it need it in the cluster: atlasctl mcp add --from functions/mcp.json
                not taken: functions/tools/unused.sh: no agent lists it in global_tools
                not taken: config.yaml: clients: openai: its keys and models belong to the namespace: atlasctl model add MODEL --provider openai --name ID --key secret://NAME
                not taken: config.yaml: clients: local: its keys and models belong to the namespace: atlasctl model add MODEL --provider openai --name ID --key secret://NAME
                not taken: config.yaml: model, save: settings of the program: an agent states its own, and the rest is for Loki's terminal
                not taken: models-override.yaml: a model states its own limits and prices: atlasctl model add --help
                not taken: vault.yml: import it with its password: atlasctl secret import
                not taken: notes.txt: it is not read: Loki has no such part, or it has no counterpart here
            "#]],
        )
        .await;
    }

    #[tokio::test]
    async fn another_folder_is_refused() {
        check(&[("x", "")], &expect![[r#""ROOT" is no configuration folder of Loki: it has no folder agents"#]]).await;
    }
}
