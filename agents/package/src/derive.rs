//! The contract of an agent of Loki, which follows from its definition: `graph.yaml` or `config.yaml`. A folder that also has an
//! `agent.yaml` keeps that one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use atlas_contract::yaml::Budget;
use atlas_graph::{Graph, Kind};
use atlas_loki_agent::{Config, ConfigError, Overrides};
use serde_json::{Value, json};

use crate::CONTRACT_FILE;
use crate::graph::{self, CONFIG_FILE, GRAPH_FILE, GraphError, GraphFolder, Reading};
use crate::overrides::{self, OverridesError};

/// The version of an agent whose definition names none.
const VERSION: &str = "1.0.0";

/// Longest time of a job in seconds, if the definition does not say. The time in which it waits for people does not count.
const TIMEOUT_SECONDS: u64 = 3_600;

/// The tool with which a model answers questions of helpers.
const ANSWERS_HELPERS: &str = "agent__reply_escalation";

/// The tools with which agents ask people.
const USER_TOOLS: [&str; 4] = ["user__ask", "user__confirm", "user__input", "user__checkbox"];

/// The tiers of models.
pub const TIERS: [&str; 3] = ["fast", "balanced", "powerful"];
/// The tier of an agent that names no model.
const TIER: &str = "balanced";

/// Most characters of a derived description.
const DESCRIPTION_MAX: usize = 1_000;

/// Why a definition gives no contract.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error("could not read \"{}\"", .path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{CONFIG_FILE} is not YAML: {problem}")]
    Syntax { problem: String },
    #[error("{CONFIG_FILE} is not usable")]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Overrides(#[from] OverridesError),
}

/// Reads the `config.yaml` of a registered agent, with what its `overrides.json` replaces.
pub fn config(folder: &Path) -> Result<Config, DefinitionError> {
    config_with(folder, &overrides::of_folder(folder)?, Reading::WithNulls)
}

/// The same for an agent that is to be registered: values that JSON cannot represent are refused, and not read as null.
pub fn config_strictly(folder: &Path) -> Result<Config, DefinitionError> {
    config_with(folder, &overrides::of_folder(folder)?, Reading::Strict)
}

fn config_with(folder: &Path, overrides: &Overrides, reading: Reading) -> Result<Config, DefinitionError> {
    let path = folder.join(CONFIG_FILE);
    let text = graph::read(&path, Budget::default().bytes_max as u64 + 1);
    let text = text.map_err(|source| DefinitionError::Read { path, source })?;
    let marked = reading.load(&text).map_err(|error| DefinitionError::Syntax { problem: error.to_string() })?;
    let mut document = marked.value;
    overrides.apply(&mut document);
    Ok(Config::read(&document)?)
}

/// Whether a folder without `agent.yaml` is an agent of Loki. `config.yaml` is a common name, so one without a name does not count.
pub(crate) fn is_defined(folder: &Path) -> bool {
    if folder.join(GRAPH_FILE).is_file() {
        return true;
    }
    let Ok(text) = graph::read(&folder.join(CONFIG_FILE), Budget::default().bytes_max as u64) else { return false };
    Reading::WithNulls.load(&text).is_ok_and(|marked| marked.value.get("name").is_some_and(Value::is_string))
}

/// Whether a folder is an agent.
pub fn is_agent(folder: &Path) -> bool {
    folder.join(CONTRACT_FILE).is_file() || is_defined(folder)
}

/// The contract that follows from the definition in a folder, with what its `overrides.json` replaces. None if the folder has no definition.
pub fn contract_of_folder(folder: &Path) -> Result<Option<Vec<u8>>, DefinitionError> {
    contract(folder, &overrides::of_folder(folder)?)
}

/// The contract of the agent in a folder, as JSON text, which is YAML. None if the folder has no definition.
pub(crate) fn contract(folder: &Path, overrides: &Overrides) -> Result<Option<Vec<u8>>, DefinitionError> {
    if !is_defined(folder) {
        return Ok(None);
    }
    let folder = folder.canonicalize().map_err(|source| DefinitionError::Read { path: folder.to_owned(), source })?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let contract = match folder.join(GRAPH_FILE).is_file() {
        true => of_graph(&name, &GraphFolder::new(&folder).read_with(overrides, Reading::Strict)?.graph),
        false => of_config(&name, &config_with(&folder, overrides, Reading::Strict)?),
    };
    Ok(Some(contract.to_string().into_bytes()))
}

fn of_graph(name: &str, graph: &Graph) -> Value {
    let has = |kind: fn(&Kind) -> bool| graph.nodes.iter().any(|node| kind(&node.kind));
    let asks = has(|kind| matches!(kind, Kind::Approval(_) | Kind::Input(_)));
    let listed = |tool: &&str| named_tools(graph).any(|name| name == *tool);
    let asked = |tool: &&str| asks && matches!(*tool, "user__ask" | "user__input");
    let tools: Vec<&str> = USER_TOOLS.into_iter().filter(|tool| asked(tool) || listed(tool)).collect();
    let defaults = graph.variables.iter().map(|variable| variable.default.as_deref().unwrap_or_default());
    let mut provider = json!({ "type": "graph" });
    if named_tools(graph).any(|name| name == ANSWERS_HELPERS) {
        provider["answers_helpers"] = true.into();
    }
    json!({ "agent": {
        "name": name,
        "version": VERSION,
        "description": shortened(&graph.description),
        "input": { "schema": input(graph.variables.iter().map(|variable| (variable.name.as_str(), variable.description.as_str()))) },
        "output": { "schema": {
            "type": "object",
            "required": ["text"],
            "properties": {
                "text": { "type": "string", "description": "The output of the end node." },
                "state": { "type": "object", "description": "The state at the end." },
            },
        }},
        "model": models(graph),
        "requires": { "skills": tools, "spawn_agents": has(|kind| matches!(kind, Kind::Agent(_))), "mcp_servers": servers(&graph.mcp_servers) },
        "permissions": permissions(defaults),
        "provider": provider,
        // The graph's own limit ends the run with its own error.
        "execution_timeout": graph.settings.timeout.map_or(TIMEOUT_SECONDS, |seconds| seconds.saturating_add(10)),
    }})
}

fn of_config(name: &str, config: &Config) -> Value {
    let mut provider = json!({ "type": "normal", "tool_permissions": config.tool_permissions });
    if let Some(session) = config.session.as_deref().filter(|session| !session.is_empty()) {
        provider["session"] = session.into();
    }
    let defaults = config.variables.iter().map(|variable| variable.default.as_deref().unwrap_or_default());
    json!({ "agent": {
        "name": name,
        "version": version(&config.version),
        "title": config.name,
        "description": shortened(&config.description),
        "input": { "schema": input(config.variables.iter().map(|variable| (variable.name.as_str(), variable.description.as_str()))) },
        "output": { "schema": {
            "type": "object",
            "required": ["text"],
            "properties": { "text": { "type": "string", "description": "The last answer of the model." } },
        }},
        "model": models_of_config(config),
        "requires": { "skills": USER_TOOLS, "spawn_agents": config.helpers.spawns, "mcp_servers": servers(&config.mcp_servers) },
        "permissions": permissions(defaults),
        "provider": provider,
        "execution_timeout": TIMEOUT_SECONDS,
    }})
}

/// The MCP servers of an agent. As in Loki, its model searches their tools.
fn servers(names: &[String]) -> Vec<Value> {
    names.iter().map(|name| json!({ "name": name, "expose": "search" })).collect()
}

/// A message, and values of variables.
fn input<'v>(variables: impl Iterator<Item = (&'v str, &'v str)>) -> Value {
    let each = |(name, description): (&str, &str)| {
        (name.to_owned(), json!({ "type": "string", "description": shortened(description) }))
    };
    let variables: serde_json::Map<String, Value> = variables.map(each).collect();
    json!({
        "type": "object",
        "required": ["message"],
        "properties": {
            "message": { "type": "string", "description": "What to do." },
            "variables": { "type": "object", "properties": variables, "additionalProperties": { "type": "string" } },
        },
    })
}

/// The tools that model nodes list.
fn named_tools(graph: &Graph) -> impl Iterator<Item = &str> {
    let lists =
        graph.nodes.iter().filter_map(|node| if let Kind::Llm(llm) = &node.kind { llm.tools.as_ref() } else { None });
    lists.flatten().map(String::as_str)
}

/// The model of an agent, and those that summarise the outputs of its helpers and search its documents.
fn models_of_config(config: &Config) -> Value {
    let mut model = model(config.model.as_deref());
    let summarizer = config.summarization_model.as_deref().filter(|_| config.helpers.spawns);
    let search = [&config.rag_embedding_model, &config.rag_reranker_model].map(Option::as_deref);
    let search = search.into_iter().flatten().filter(|_| !config.documents.is_empty());
    let others: BTreeSet<String> = summarizer.into_iter().chain(search).map(model_name).collect();
    let others: Vec<String> = others.into_iter().filter(|name| !name.is_empty()).collect();
    if !others.is_empty() {
        model["others"] = json!(others);
    }
    model
}

/// The model of a graph, and those that its nodes name.
fn models(graph: &Graph) -> Value {
    let mut model = model(graph.model.as_deref());
    let own = model.get("name").or_else(|| model.get("preference")).and_then(Value::as_str).unwrap_or(TIER).to_owned();
    let named = graph.nodes.iter().flat_map(|node| node.model().into_iter().chain(node.search_models()));
    let others: BTreeSet<String> = named.map(model_name).filter(|name| !name.is_empty() && *name != own).collect();
    if !others.is_empty() {
        model["others"] = json!(others);
    }
    model
}

/// The name of a model or tier of the namespace: what follows the client in `client:model`, with hyphens in place of characters that
/// no name has, as in `ollama:llama3:8b` and `router:meta/llama`.
pub fn model_name(text: &str) -> String {
    let name = text.split_once(':').map_or(text, |(_, model)| model);
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    name.chars().map(|letter| if allowed(letter) { letter } else { '-' }).collect()
}

/// A tier, or a model of the namespace.
fn model(name: Option<&str>) -> Value {
    match name.map(model_name).as_deref() {
        None | Some("") => json!({}),
        Some(tier) if TIERS.contains(&tier) => json!({ "preference": tier }),
        Some(name) => json!({ "name": name }),
    }
}

/// The secrets to which default values refer: `{{NAME}}`.
fn permissions<'v>(defaults: impl Iterator<Item = &'v str>) -> Value {
    let names: BTreeSet<&str> = defaults.flat_map(placeholders).collect();
    json!({ "secrets": names })
}

/// The names in a text that have the form of a secret's placeholder.
pub fn placeholders(text: &str) -> Vec<&str> {
    let is_name = |name: &&str| {
        let mut bytes = name.bytes();
        bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    text.split("{{").skip(1).filter_map(|rest| rest.split_once("}}").map(|(name, _)| name)).filter(is_name).collect()
}

/// The version as a contract has it: `2` and `2.1` are completed.
fn version(text: &str) -> String {
    let text = text.trim();
    let numbers = text.split('.').count();
    let are_numbers = text.split('.').all(|part| part.len() <= 9 && part.parse::<u32>().is_ok());
    if !are_numbers || numbers > 3 {
        return VERSION.to_owned();
    }
    format!("{text}{}", ".0".repeat(3 - numbers))
}

fn shortened(text: &str) -> String {
    text.chars().take(DESCRIPTION_MAX).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::{discover, pack};

    /// Writes one file of an agent `flow-er`, and shows what its contract requires, or the error.
    fn check(file: &str, text: &str, expected: &Expect) {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("flow-er");
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::write(folder.join(file), text).expect("a file");
        let shown = match pack(&folder) {
            Ok(package) => {
                let contract = package.contract;
                let found = discover(&[root.path()]).found;
                assert_eq!(found.len(), 1, "the folder is found");
                assert_eq!(found[0].contract, contract);
                format!(
                    "{} {} {} model={}/{:?} skills={:?} spawns={} servers={:?} secrets={:?} timeout={}",
                    contract.name,
                    contract.version,
                    contract.provider.kind.as_str(),
                    contract.model.preference,
                    contract.model.name,
                    contract.requires.skills,
                    contract.requires.spawn_agents,
                    contract.requires.mcp_servers.iter().map(|server| &server.name).collect::<Vec<_>>(),
                    contract.permissions.secrets,
                    contract.execution_timeout
                )
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
                format!("{error}{cause}")
            }
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn graphs_have_contracts() {
        check(
            "graph.yaml",
            "name: x\nstart: e\nmodel: 'openai:gpt-5'\nsettings: {timeout: 5}\nvariables: [{name: k, description: d, default: '{{API_KEY}}'}]\nnodes:\n  e: {type: end}\n",
            &expect![[
                r#"flow-er 1.0.0 graph model=balanced/Some("gpt-5") skills=[] spawns=false servers=[] secrets=["API_KEY"] timeout=15"#
            ]],
        );
        check(
            "graph.yaml",
            "name: x\nstart: i\nmodel: fast\nnodes:\n  i: {type: input, question: q, next: a}\n  a: {type: agent, agent: b, prompt: p, next: e}\n  e: {type: end}\n",
            &expect![[
                r#"flow-er 1.0.0 graph model=fast/None skills=["user__ask", "user__input"] spawns=true servers=[] secrets=[] timeout=3600"#
            ]],
        );
    }

    #[test]
    fn graphs_name_the_models_servers_and_questions_of_their_nodes() {
        let graph = "name: x\nstart: a\nmodel: 'openai:gpt-5'\nmcp_servers: [github]\nnodes:\n  \
                     a: {type: llm, prompt: p, model: fast, next: b}\n  \
                     b: {type: llm, prompt: p, model: gpt-5, tools: [user__confirm, 'mcp:github', other], next: c}\n  \
                     c: {type: llm, prompt: p, model: 'ollama:llama3:8b', next: d}\n  \
                     d: {type: rag, documents: [x], embedding_model: 'openai:small', reranker_model: rank, next: e}\n  e: {type: end}\n";
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("flow");
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::write(folder.join("graph.yaml"), graph).expect("a file");
        let contract = pack(&folder).expect("a package").contract;
        assert_eq!(
            (contract.model.name.as_deref(), &contract.model.others),
            (Some("gpt-5"), &["fast", "llama3-8b", "rank", "small"].map(str::to_owned).to_vec())
        );
        assert_eq!(contract.requires.skills, ["user__confirm"]);
        assert_eq!(contract.provider.llm.answers_helpers, None);
        let answers = graph.replace("other]", "agent__reply_escalation]");
        std::fs::write(folder.join("graph.yaml"), answers).expect("a file");
        assert_eq!(pack(&folder).expect("a package").contract.provider.llm.answers_helpers, Some(true));
        assert_eq!(contract.run_spec().servers, ["github"]);
        assert_eq!(contract.requires.mcp_servers[0].expose, atlas_contract::Expose::Search);
    }

    #[test]
    fn configurations_have_contracts() {
        check(
            "config.yaml",
            "name: X\nversion: '2.1'\ncan_spawn_agents: true\nmcp_servers: [github]\n",
            &expect![[
                r#"flow-er 2.1.0 normal model=balanced/None skills=["user__ask", "user__confirm", "user__input", "user__checkbox"] spawns=true servers=["github"] secrets=[] timeout=3600"#
            ]],
        );
        let text = "name: X\nmodel: fast\ncan_spawn_agents: true\nsummarization_model: 'openai:small'\n";
        let of = |text: &str| {
            of_config(
                "x",
                &Config::read(&Reading::Strict.load(text.as_bytes()).expect("YAML").value).expect("a configuration"),
            )
        };
        assert_eq!(of("name: X\nagent_session: work\n")["agent"]["provider"]["session"], "work");
        assert_eq!(of("name: X\nagent_session: ''\n")["agent"]["provider"].get("session"), None);
        assert_eq!(of(text)["agent"]["model"], json!({"preference": "fast", "others": ["small"]}));
        assert_eq!(of("name: X\nsummarization_model: small\n")["agent"]["model"], json!({}));
        check(
            "config.yaml",
            "name: X\nversion: first\n",
            &expect![[
                r#"flow-er 1.0.0 normal model=balanced/None skills=["user__ask", "user__confirm", "user__input", "user__checkbox"] spawns=false servers=[] secrets=[] timeout=3600"#
            ]],
        );
    }

    #[test]
    fn what_is_no_definition_is_refused() {
        check(
            "graph.yaml",
            "start: [",
            &expect![
                "the definition is not valid: graph.yaml cannot be read: the file is not YAML: line 1, column 8: unclosed bracket '['"
            ],
        );
        check(
            "config.yaml",
            "name: x\nauto_continue: 5\n",
            &expect!["the definition is not valid: config.yaml is not usable"],
        );
        check("config.yaml", "title: x\n", &expect!["it contains no agent.yaml"]);
    }

    #[test]
    fn placeholders_are_names() {
        assert_eq!(placeholders("a {{B}} {{c d}} {{E_1}}{{ F }} {{"), ["B", "E_1"]);
    }
}
