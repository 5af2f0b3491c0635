//! Definitions of agents: what the first job would find wrong in the package.

mod tools;

use std::collections::BTreeSet;
use std::path::Path;

use atlas_contract::schema::{Validator, never};
use atlas_contract::{Contract, ProviderKind, Warning};
use atlas_graph::{Finding, Graph, Kind, Level, LoadedGraph};
use atlas_package::{CONFIG_FILE, CONTRACT_FILE, GRAPH_FILE, GraphFolder, KnownNames, graph_tools};
use serde_json::{Value, json};

use self::tools::Tools;
use super::Findings;

/// Checks the definition in the folder of an unpacked package.
pub(super) fn check(root: &Path, contract: &Contract, findings: &mut Findings) {
    output(contract, findings);
    match contract.provider.kind {
        ProviderKind::Graph => graph(root, contract, findings),
        ProviderKind::LokiAgent => normal(root, contract, findings),
        _ => {}
    }
}

/// The output that providers make themselves must be one that the contract accepts; any output must be possible.
fn output(contract: &Contract, findings: &mut Findings) {
    let at = |pointer: &str| format!("{CONTRACT_FILE} /agent/output/schema{pointer}");
    if let Some((pointer, why)) = never(&contract.output_schema) {
        findings.fault(at(&pointer), format!("no output satisfies it: {why}"));
        return;
    }
    let made = match contract.provider.kind {
        ProviderKind::Llm if contract.provider.output_format == "text" => json!({"result": "…"}),
        ProviderKind::LokiAgent => json!({"text": "…"}),
        ProviderKind::Graph => json!({"text": "…", "state": {}}),
        _ => return,
    };
    let Ok(validator) = Validator::compile(&contract.output_schema) else { return };
    // What a text or a state may be is not known here; which members there are is.
    let is_certain = |pointer: &str| pointer == "/" || pointer.matches('/').count() == 1;
    let violations = validator.validate(&made).err().unwrap_or_default();
    let certain = violations.into_iter().filter(|violation| {
        is_certain(&violation.pointer)
            && match violation.rule.as_str() {
                "required" | "additionalProperties" => violation.pointer == "/",
                "type" => true,
                _ => false,
            }
    });
    for violation in certain {
        let members: Vec<&str> = made.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let what = format!("its outputs have the members {}: {}", members.join(" and "), violation.message);
        findings.fault(at(""), what);
    }
}

/// Checks a configuration.
fn normal(root: &Path, contract: &Contract, findings: &mut Findings) {
    let config = match atlas_package::config_strictly(root) {
        Ok(config) => config,
        Err(error) => return findings.fault(CONFIG_FILE, atlas_env::chain(&error)),
    };
    let unused = atlas_package::config_warnings(root).unwrap_or_default();
    findings.warnings.extend(unused.into_iter().map(|warning| warning.in_file(CONFIG_FILE)));
    let tools = Tools::read(root, &config.global_tools);
    tools.tell(CONFIG_FILE, true, findings);
    for name in tools.names().filter(|name| contract.requires.skills.iter().any(|skill| skill == name)) {
        findings.fault(
            CONFIG_FILE,
            format!("two tools have the name \"{name}\": one of the platform and one of the agent"),
        );
    }
    if config.dynamic_instructions && !tools.instructions {
        let what = "the tools have no function _instructions, which dynamic_instructions asks for";
        findings.fault(format!("{CONFIG_FILE} /dynamic_instructions"), what);
    }
    for (index, document) in config.documents.iter().enumerate() {
        documents(root, document, format!("{CONFIG_FILE} /documents/{index}"), findings);
    }
    let open = config.variables.iter().filter(|variable| variable.default.is_none());
    open_variables(CONFIG_FILE, open.map(|variable| variable.name.as_str()), findings);
}

fn documents(root: &Path, document: &str, at: String, findings: &mut Findings) {
    if let Err(error) = atlas_documents::files(root, &[document.to_owned()]) {
        findings.fault(at, atlas_env::chain(&error));
    }
}

fn open_variables<'v>(file: &str, names: impl Iterator<Item = &'v str>, findings: &mut Findings) {
    let names: Vec<&str> = names.collect();
    if !names.is_empty() {
        let what = format!("variables without a default: {}", names.join(", "));
        findings.warn(Warning::new(format!("{file} /variables"), what).with_hint("each job must give them"));
    }
}

/// Checks a graph. Other agents may be in the cluster.
fn graph(root: &Path, contract: &Contract, findings: &mut Findings) {
    let folder = GraphFolder::new(root);
    let loaded = match folder.read_strictly() {
        Ok(loaded) => loaded,
        Err(error) => return findings.fault(GRAPH_FILE, atlas_env::chain(&error)),
    };
    let known = KnownNames { agents_elsewhere: true, ..known(root, &loaded.graph, Some(contract)) };
    for found in atlas_graph::check(&loaded, &GraphFolder { known, ..folder }) {
        match found.level {
            Level::Error => findings.fault(GRAPH_FILE, found.to_string()),
            Level::Warning => findings.warn(warning(&found).in_file(GRAPH_FILE)),
        }
    }
    beyond(root, &loaded, findings);
}

/// A finding with its place in the form of all warnings.
fn warning(found: &Finding) -> Warning {
    let line = found.line.map(|line| format!("line {line}: ")).unwrap_or_default();
    let node = found.node.as_ref().map(|node| format!("[{node}] ")).unwrap_or_default();
    let message = format!("{line}{node}{} ({})", found.message, found.check.code());
    Warning { path: found.pointer.clone(), message, hint: found.suggestion.clone() }
}

/// The names that nodes can use, as a job knows them. Without a contract, the one that follows from the graph counts.
pub(crate) fn known(root: &Path, graph: &Graph, contract: Option<&Contract>) -> KnownNames {
    let tools = Tools::read(root, &graph.global_tools);
    let mut names: BTreeSet<String> = graph_tools(graph);
    names.extend(tools.names().map(str::to_owned));
    let shared = contract.map(|contract| contract.requires.shared_tools()).unwrap_or_default();
    names.extend(shared.into_iter().map(str::to_owned));
    KnownNames {
        tools: Some(names),
        servers: Some(graph.mcp_servers.iter().cloned().collect()),
        ..KnownNames::default()
    }
}

/// What a run of a graph would find wrong besides its definition: tools, documents and schemas.
pub(crate) fn beyond(root: &Path, loaded: &LoadedGraph, findings: &mut Findings) {
    let graph = &loaded.graph;
    let calls = graph
        .nodes
        .iter()
        .any(|node| matches!(&node.kind, Kind::Llm(llm) if llm.tools.iter().flatten().any(|name| is_own(name))));
    // Tools that no node can call are not read.
    Tools::read(root, &graph.global_tools).tell(GRAPH_FILE, calls, findings);
    for node in graph.nodes.iter() {
        let at = |field: &str| format!("{GRAPH_FILE} /nodes/{}/{field}", node.id);
        let schema = match &node.kind {
            Kind::Llm(llm) => llm.output_schema.as_ref(),
            Kind::Agent(agent) => agent.output_schema.as_ref(),
            Kind::Rag(rag) => {
                for (index, document) in rag.documents.iter().enumerate() {
                    documents(root, document, at(&format!("documents/{index}")), findings);
                }
                None
            }
            _ => None,
        };
        if let Some(schema) = schema {
            schema_of_node(schema, &at("output_schema"), findings);
        }
    }
    let open = graph.variables.iter().filter(|variable| variable.default.is_none());
    open_variables(GRAPH_FILE, open.map(|variable| variable.name.as_str()), findings);
}

fn schema_of_node(schema: &Value, at: &str, findings: &mut Findings) {
    if let Err(error) = Validator::compile(schema) {
        findings.fault(at, error.to_string());
    } else if let Some((pointer, why)) = never(schema) {
        findings.fault(format!("{at}{pointer}"), format!("no output satisfies it: {why}"));
    }
}

/// Whether a tool that a node lists is one of the graph's files.
fn is_own(name: &str) -> bool {
    !["mcp:", "agent__", "user__"].iter().any(|begin| name.starts_with(begin))
}
