//! What a configuration folder of Loki has besides agents: each part is listed with what takes its place here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use atlas_contract::yaml::{Budget, load_core};
use atlas_package::TOOLS_FOLDER;
use serde_json::Value;

/// Most entries of a folder that are listed by their names.
const LISTED_MAX: usize = 100;

/// Folders of files that have no counterpart of the same form: the folder, and what to do with each file.
const FOLDERS: [(&str, &str); 4] = [
    ("roles", "there are no roles: put its text into the instructions of an agent, atlasctl init NAME"),
    ("macros", "there are no macros: write a chain, atlasctl docs chains, or a script with commands of atlasctl"),
    ("sessions", "conversations begin anew: atlasctl run AGENT --conversation NAME"),
    ("rags", "a base is imported by itself: atlasctl rag import FILE"),
];

/// The program's own settings.
const MAIN: &str = "config.yaml";

/// Lists what is not taken over: where, and what to do. `used` are the tools that agents list.
pub(super) fn list(root: &Path, used: &BTreeSet<String>, left: &mut Vec<(String, String)>) {
    let mut add = |place: String, why: &str| left.push((place, why.to_owned()));
    if root.join("agents/.shared").is_dir() {
        add(
            "agents/.shared".to_owned(),
            "packages have no hidden files; copy what the agents source into their folders",
        );
    }
    for agent in names(&root.join("agents")) {
        if root.join("agents").join(&agent).join("rag.yaml").is_file() {
            add(format!("agents/{agent}/rag.yaml"), "documents are searched by their words, without an index");
        }
        for session in names(&root.join("agents").join(&agent).join("sessions")) {
            let why = format!("conversations begin anew: atlasctl run {agent} --conversation NAME");
            add(format!("agents/{agent}/sessions/{session}"), &why);
        }
    }
    for (folder, why) in FOLDERS {
        names(&root.join(folder)).into_iter().for_each(|name| add(format!("{folder}/{name}"), why));
    }
    for server in servers(&root.join("functions/mcp.json")) {
        let why = "agents that list it need it in the cluster: atlasctl mcp add --from functions/mcp.json";
        add(format!("functions/mcp.json: {server}"), why);
    }
    for tool in names(&root.join(TOOLS_FOLDER)) {
        let stem = tool.rsplit_once('.').map_or(tool.as_str(), |(stem, _)| stem);
        if !used.contains(&tool) && !used.contains(stem) {
            add(format!("{TOOLS_FOLDER}/{tool}"), "no agent lists it in global_tools");
        }
    }
    main(root, &mut add);
    if root.join("models-override.yaml").is_file() {
        add("models-override.yaml".to_owned(), "a model states its own limits and prices: atlasctl model add --help");
    }
    if root.join("vault.yml").is_file() {
        add("vault.yml".to_owned(), "import it with its password: atlasctl secret import");
    }
    let read = ["agents", "functions", MAIN, "models-override.yaml", "vault.yml"];
    for name in names(root) {
        if !read.contains(&name.as_str()) && FOLDERS.iter().all(|(folder, _)| *folder != name) {
            add(name, "it is not read: Loki has no such part, or it has no counterpart here");
        }
    }
}

/// The clients, whose models a namespace has, and the settings of the program.
fn main(root: &Path, add: &mut impl FnMut(String, &str)) {
    let text = fs::read(root.join(MAIN)).unwrap_or_default();
    let Ok(marked) = load_core(&text, Budget::default()) else {
        return add(MAIN.to_owned(), "it is not YAML, so its clients are not listed");
    };
    let Some(members) = marked.value.as_object() else { return };
    for client in members.get("clients").and_then(Value::as_array).into_iter().flatten() {
        let text = |name: &str| client[name].as_str();
        let name = text("name").or(text("type")).unwrap_or("without a name");
        let provider = provider(text("type").unwrap_or_default());
        let why = format!(
            "its keys and models belong to the namespace: atlasctl model add MODEL --provider {provider} --name ID --key secret://NAME"
        );
        add(format!("{MAIN}: clients: {name}"), &why);
    }
    let others: Vec<&str> = members.keys().map(String::as_str).filter(|name| *name != "clients").collect();
    if !others.is_empty() {
        let why = "settings of the program: an agent states its own, and the rest is for Loki's terminal";
        add(format!("{MAIN}: {}", others.join(", ")), why);
    }
}

/// The provider of the models of a client.
fn provider(kind: &str) -> &str {
    match kind {
        "claude" => "anthropic",
        "gemini" | "cohere" | "bedrock" => kind,
        "vertexai" => "vertex",
        "azure-openai" => "azure",
        _ => "openai",
    }
}

/// The names in a folder, sorted, without hidden ones.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort_unstable();
    names.truncate(LISTED_MAX);
    names
}

/// The names of the MCP servers in a file.
fn servers(path: &Path) -> Vec<String> {
    let text = fs::read(path).unwrap_or_default();
    let value = load_core(&text, Budget::default()).map(|marked| marked.value).unwrap_or_default();
    let servers = value.get("mcpServers").and_then(Value::as_object);
    servers.map(|servers| servers.keys().cloned().collect()).unwrap_or_default()
}
