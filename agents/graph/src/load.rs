//! Reads a graph from its document. All errors are reported at once, with their lines.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use crate::fields::{Fields, a_type, scalar};
use crate::finding::{Check, Finding, Level, Lines, line_of, member};
use crate::graph::{CONCURRENCY, Graph, LOOP_ITERATIONS, Nodes, Settings, Variable};
use crate::{Reducer, node};

/// The only version of the format.
const VERSION: &str = "1.0";

/// The types of nodes.
pub(crate) const TYPES: [&str; 8] = ["llm", "script", "approval", "input", "rag", "map", "agent", "end"];

/// Fields of a graph that have no effect.
const UNUSED: [&str; 5] =
    ["conversation_starters", "skills_enabled", "enabled_skills", "inject_skill_instructions", "skill_instructions"];
/// Settings that have no effect: each step is recorded in any case.
const UNUSED_SETTINGS: [&str; 1] = ["log_state_snapshots"];

/// A document and what is known about it.
#[derive(Debug, Clone, Copy)]
pub struct Source<'d> {
    pub value: &'d Value,
    pub lines: &'d Lines,
    /// The known name that is most similar to another one, if they differ little.
    pub nearest: fn(&str, &[&str]) -> Option<String>,
}

/// A graph, and what is wrong with its document although it can be read.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedGraph {
    pub graph: Graph,
    /// Unknown and unused fields.
    pub findings: Vec<Finding>,
    pub lines: Lines,
}

/// Why a document is no graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadErrors(pub Vec<LoadError>);

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    pub kind: LoadErrorKind,
    /// JSON pointer of the value.
    pub pointer: String,
    pub line: Option<usize>,
    /// How to correct it.
    pub suggestion: Option<String>,
}

/// The kinds of reasons.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadErrorKind {
    #[error("the file is not YAML: {problem}")]
    Syntax { problem: String },
    #[error("needs {wants}, and is {got}")]
    WrongType { wants: &'static str, got: &'static str },
    #[error("the field \"{field}\" is missing")]
    MissingField { field: &'static str },
    #[error("unknown node type \"{name}\"")]
    UnknownType { name: String },
    #[error("unknown reducer \"{name}\"")]
    UnknownReducer { name: String },
    #[error("the version \"{version}\" is not supported; the only one is \"{VERSION}\"")]
    Version { version: String },
    #[error("the id \"{id}\" of the node \"{key}\" differs from its key")]
    IdMismatch { id: String, key: String },
    #[error("the name is empty")]
    EmptyName,
    #[error("the graph has no nodes")]
    NoNodes,
    #[error("the start node \"{start}\" does not exist; the nodes are: {ids}")]
    UnknownStart { start: String, ids: String },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if matches!(self.kind, LoadErrorKind::WrongType { .. }) {
            write!(f, "{} ", if self.pointer.is_empty() { "the document" } else { &self.pointer })?;
        }
        write!(f, "{}", self.kind)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; {suggestion}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for LoadErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors: Vec<String> = self.0.iter().map(LoadError::to_string).collect();
        write!(f, "graph.yaml cannot be read: {}", errors.join("; "))
    }
}

impl std::error::Error for LoadErrors {}

/// The state of reading a document.
pub(crate) struct Reading<'d> {
    source: Source<'d>,
    pub(crate) errors: Vec<LoadError>,
    findings: Vec<Finding>,
}

/// Reads a graph.
pub fn load(source: Source<'_>) -> Result<LoadedGraph, LoadErrors> {
    let empty = Map::new();
    let mut reading = Reading { source, errors: Vec::new(), findings: Vec::new() };
    let graph = graph(source.value, &empty, &mut reading);
    if reading.errors.is_empty() {
        structure(&graph, &mut reading);
    }
    if reading.errors.is_empty() {
        Ok(LoadedGraph { graph, findings: reading.findings, lines: source.lines.clone() })
    } else {
        Err(LoadErrors(reading.errors))
    }
}

fn graph<'d>(value: &'d Value, empty: &'d Map<String, Value>, reading: &mut Reading<'d>) -> Graph {
    let mut fields = Fields::of(value, String::new(), empty, reading).plain();
    let name = fields.text("name");
    let description = fields.text_or("description", "");
    let version = fields.text_or("version", VERSION);
    let model = fields.text_or_none("model");
    let temperature = fields.number_or_none("temperature");
    let top_p = fields.number_or_none("top_p");
    let reasoning_effort = fields.text_or_none("reasoning_effort");
    let global_tools = fields.texts_or_empty("global_tools");
    let mcp_servers = fields.texts_or_empty("mcp_servers");
    let conversation_starters = fields.texts_or_empty("conversation_starters");
    let variables = variables(&mut fields, empty);
    let settings = settings(&mut fields, empty);
    let initial_state = fields.object_or_empty("initial_state");
    let reducers = fields.object_or_empty("reducers");
    let start = fields.text("start");
    let nodes = nodes(&mut fields, empty);
    fields.unused(&UNUSED, None);
    let mut known = std::collections::BTreeMap::new();
    for (key, reducer) in &reducers {
        let pointer = member("/reducers", key);
        match reducer.as_str().map(|name| (name, Reducer::named(name))) {
            Some((_, Some(reducer))) => {
                known.insert(key.clone(), reducer);
            }
            Some((name, None)) => {
                let names = Reducer::ALL.map(Reducer::name);
                let kind = LoadErrorKind::UnknownReducer { name: name.to_owned() };
                let suggestion = format!("the reducers are: {}", names.join(", "));
                fields.reading.error(kind, &pointer, Some(suggestion));
            }
            None => fields.reading.wrong_type(&pointer, "the name of a reducer", reducer),
        }
    }
    fields.finish(None);
    Graph {
        name,
        description,
        version,
        model,
        temperature,
        top_p,
        reasoning_effort,
        global_tools,
        mcp_servers,
        conversation_starters,
        variables,
        settings,
        initial_state,
        reducers: known,
        start,
        nodes,
    }
}

fn variables<'d>(fields: &mut Fields<'d, '_>, empty: &'d Map<String, Value>) -> Vec<Variable> {
    let Some(value) = fields.value("variables").filter(|value| !value.is_null()) else { return Vec::new() };
    let Some(items) = value.as_array() else {
        fields.wrong("variables", "a list", value);
        return Vec::new();
    };
    let mut variables = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let at = format!("{}/variables/{index}", fields.at);
        let mut inner = Fields::of(item, at, empty, fields.reading).plain();
        variables.push(Variable {
            name: inner.text("name"),
            description: inner.text("description"),
            default: inner.text_or_none("default"),
        });
        inner.finish(None);
    }
    variables
}

fn settings<'d>(fields: &mut Fields<'d, '_>, empty: &'d Map<String, Value>) -> Settings {
    let Some(value) = fields.value("settings") else { return Settings::default() };
    let mut inner = Fields::of(value, "/settings".to_owned(), empty, fields.reading);
    let default = Settings::default();
    let settings = Settings {
        max_loop_iterations: inner.count_or("max_loop_iterations", LOOP_ITERATIONS),
        timeout: inner.count_or_none("timeout"),
        log_state_snapshots: inner.flag_or("log_state_snapshots", default.log_state_snapshots),
        validate_before_run: inner.flag_or("validate_before_run", default.validate_before_run),
        max_concurrency: inner.size_or("max_concurrency", CONCURRENCY),
        fail_fast: inner.flag_or("fail_fast", default.fail_fast),
    };
    inner.unused(&UNUSED_SETTINGS, None);
    inner.finish(None);
    settings
}

fn nodes<'d>(fields: &mut Fields<'d, '_>, empty: &'d Map<String, Value>) -> Nodes {
    let mut nodes = Nodes::default();
    let Some(value) = fields.required_value("nodes") else { return nodes };
    let Some(members) = value.as_object() else {
        if !value.is_null() {
            fields.wrong("nodes", "an object", value);
        }
        return nodes;
    };
    for (key, value) in members {
        let inner = Fields::of(value, member("/nodes", key), empty, fields.reading);
        nodes.insert(node::read(key, inner));
    }
    nodes
}

/// What a graph needs besides the types of its fields.
fn structure(graph: &Graph, reading: &mut Reading<'_>) {
    if graph.version != VERSION {
        reading.error(LoadErrorKind::Version { version: graph.version.clone() }, "/version", None);
    }
    for (key, node) in reading.source.value.get("nodes").and_then(Value::as_object).into_iter().flatten() {
        let id = node.get("id").and_then(scalar).filter(|id| !id.is_empty() && id != key);
        if let Some(id) = id {
            let kind = LoadErrorKind::IdMismatch { id, key: key.clone() };
            reading.error(
                kind,
                &member(&member("/nodes", key), "id"),
                Some("remove the id, which is optional".to_owned()),
            );
        }
    }
    if graph.name.is_empty() {
        reading.error(LoadErrorKind::EmptyName, "/name", None);
    }
    if graph.nodes.is_empty() {
        reading.error(LoadErrorKind::NoNodes, "/nodes", None);
    } else if graph.node(&graph.start).is_none() {
        let ids: Vec<&str> = graph.nodes.ids().take(50).collect();
        let suggestion = reading.nearest(&graph.start, &ids);
        let kind = LoadErrorKind::UnknownStart { start: graph.start.clone(), ids: ids.join(", ") };
        reading.error(kind, "/start", suggestion);
    }
}

impl Reading<'_> {
    pub(crate) fn line(&self, pointer: &str) -> Option<usize> {
        line_of(self.source.lines, pointer)
    }

    pub(crate) fn error(&mut self, kind: LoadErrorKind, pointer: &str, suggestion: Option<String>) {
        self.errors.push(LoadError { kind, line: self.line(pointer), pointer: pointer.to_owned(), suggestion });
    }

    pub(crate) fn wrong_type(&mut self, pointer: &str, wants: &'static str, value: &Value) {
        self.error(LoadErrorKind::WrongType { wants, got: a_type(value) }, pointer, None);
    }

    /// The suggestion for a name that is not known.
    pub(crate) fn nearest(&self, name: &str, known: &[&str]) -> Option<String> {
        (self.source.nearest)(name, known).map(|meant| format!("did you mean \"{meant}\"?"))
    }

    pub(crate) fn unknown(&mut self, pointer: &str, name: &str, known: &BTreeSet<&'static str>, node: Option<&str>) {
        let known: Vec<&str> = known.iter().copied().collect();
        let suggestion = self.nearest(name, &known);
        self.findings.push(Finding {
            check: Check::UnknownField,
            level: Level::Error,
            node: node.map(str::to_owned),
            line: self.line(pointer),
            pointer: pointer.to_owned(),
            message: format!("unknown field '{name}'"),
            suggestion,
        });
    }

    pub(crate) fn unsupported(&mut self, pointer: &str, name: &str, node: Option<&str>) {
        self.findings.push(Finding {
            check: Check::UnsupportedField,
            level: Level::Error,
            node: node.map(str::to_owned),
            line: self.line(pointer),
            pointer: pointer.to_owned(),
            message: format!("the field '{name}' is not supported"),
            suggestion: Some("remove it".to_owned()),
        });
    }

    pub(crate) fn unused(&mut self, pointer: &str, name: &str, node: Option<&str>) {
        self.findings.push(Finding {
            check: Check::UnusedField,
            level: Level::Warning,
            node: node.map(str::to_owned),
            line: self.line(pointer),
            pointer: pointer.to_owned(),
            message: format!("the field '{name}' has no effect"),
            suggestion: None,
        });
    }
}

#[cfg(test)]
mod tests;
