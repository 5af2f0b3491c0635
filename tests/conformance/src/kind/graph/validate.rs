//! Rows of kind `graph-validate`.

use std::collections::BTreeSet;

use atlas_graph::{Finding, Level, LoadErrorKind, LoadErrors, LoadedGraph};
use atlas_package::{GraphError, graph_tools};
use serde_json::{Value, json};

use super::folder::{Config, is_start_error, write};
use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items, text};

/// Requirements that make Atlas find more than Loki, and the rules of ours that say so.
const OWN: [(&str, &[&str]); 8] = [
    ("REQ-31", &["unknown-field"]),
    ("REQ-32", &["input-next"]),
    ("REQ-33", &["missing-next"]),
    ("REQ-37", &["input-validation"]),
    ("REQ-39", &["lookalike"]),
    ("REQ-50", &["uneven-join"]),
    ("REQ-57", &["script-path"]),
    ("REQ-63", &["map-over", "map-keys", "option-twice", "unwritten-key", "unused-reducer", "input-validation"]),
];

pub(crate) fn validate(row: &Row) -> Judged {
    let mut config = write(row, "files")?;
    let loaded = match config.graph.read() {
        Ok(loaded) => loaded,
        Err(GraphError::Load(errors)) => return load_error(row, &errors),
        Err(error) if is_start_error(&error) => return start_error(row, &error.to_string()),
        Err(error) => return Err(Stop::fail(error.to_string())),
    };
    if row.input["with_agent"] == true
        && let Err(error) = begin(row, &mut config, &loaded)
    {
        return start_error(row, &error.to_string());
    }
    let found = atlas_graph::check(&loaded, &config.graph);
    for (_, codes) in OWN.iter().filter(|(requirement, _)| row.differs_in(requirement)) {
        if !found.iter().any(|finding| codes.contains(&finding.check.code())) {
            return Err(Stop::fail(format!("no finding of {}", codes.join(", "))));
        }
    }
    for (member, level) in [("errors", Level::Error), ("warnings", Level::Warning)] {
        let own: Vec<&Finding> =
            found.iter().filter(|finding| finding.level == level && is_numbered(finding)).collect();
        same(row, member, &own)?;
    }
    let valid = !found.iter().any(|finding| finding.level == Level::Error && is_numbered(finding));
    if !row.differs_in("REQ-54") {
        compare(&row.expect["ok"], &json!(valid), &Captures::new())?;
    }
    let mut shown = loaded.graph.to_json();
    for variable in shown["variables"].as_array_mut().into_iter().flatten() {
        variable["value"] = json!("");
    }
    compare(&set(row.expect["loaded"].clone()), &shown, &Captures::new())
}

/// Starts the agent as far as a validation needs it: its tools, servers, models and variables.
fn begin(row: &Row, config: &mut Config, loaded: &LoadedGraph) -> Result<(), GraphError> {
    let graph = &loaded.graph;
    let tools = config.root.path().join("functions/tools");
    config.graph.check_start(graph, &tools)?;
    let models: BTreeSet<String> =
        items(&row.input, "models").filter_map(|model| Some(model.as_str()?.to_owned())).collect();
    if let Some(name) = graph.model.as_ref().filter(|model| !models.contains(*model)) {
        return Err(GraphError::Model { name: name.clone() });
    }
    let known = &mut config.graph.known;
    known.models = Some(models);
    known.servers = Some(graph.mcp_servers.iter().cloned().collect());
    known.tools = Some(graph_tools(graph));
    if config.graph.has_own_tools() {
        config.graph.known.tools = None;
    }
    Ok(())
}

fn start_error(row: &Row, error: &str) -> Judged {
    match row.expect.get("start_error") {
        Some(_) => Ok(()),
        None => Err(Stop::fail(format!("the agent does not start: {error}"))),
    }
}

fn load_error(row: &Row, errors: &LoadErrors) -> Judged {
    let Some(first) = errors.0.first() else { return Err(Stop::fail("no load error")) };
    let expected = &row.expect["load_error"];
    let names = names(&first.kind);
    let kind = text(expected, "kind");
    if !names.contains(&kind) {
        return Err(Stop::fail(format!("expected the load error \"{kind}\", got {errors}")));
    }
    match (&first.kind, expected.get("field")) {
        (LoadErrorKind::MissingField { field }, Some(expected)) => compare(expected, &json!(field), &Captures::new()),
        _ => Ok(()),
    }
}

/// The names by which rows can refer to an error: the sample has the first three, so the others are accepted in several spellings.
fn names(kind: &LoadErrorKind) -> &'static [&'static str] {
    match kind {
        LoadErrorKind::WrongType { .. } => &["wrong-type"],
        LoadErrorKind::MissingField { .. } => &["missing-field"],
        LoadErrorKind::UnknownType { .. } => &["unknown-type"],
        LoadErrorKind::Syntax { .. } => &["syntax", "yaml", "parse", "not-yaml", "invalid-yaml"],
        LoadErrorKind::UnknownReducer { .. } => &["unknown-reducer", "reducer", "unknown-variant", "wrong-type"],
        LoadErrorKind::Version { .. } => &["version", "wrong-version", "unsupported-version", "bad-version"],
        LoadErrorKind::IdMismatch { .. } => &["id-mismatch", "wrong-id", "id"],
        LoadErrorKind::EmptyName => &["empty-name", "name", "no-name"],
        LoadErrorKind::NoNodes => &["no-nodes", "empty-nodes", "nodes"],
        LoadErrorKind::UnknownStart { .. } => &["unknown-start", "start", "missing-start", "start-missing", "no-start"],
    }
}

/// Whether the rule has a number, and is not one of ours.
fn is_numbered(finding: &Finding) -> bool {
    finding.check.code().starts_with('V')
}

/// Compares findings: each expected one is there, with what it mentions, and no other.
fn same(row: &Row, member: &str, own: &[&Finding]) -> Judged {
    let number = |code: &str| code.split('-').next().unwrap_or(code).to_owned();
    let is = |expected: &Value, finding: &Finding| {
        number(text(expected, "check")) == number(finding.check.code())
            && expected["node"].as_str() == finding.node.as_deref()
    };
    let expected: Vec<&Value> = items(&row.expect, member)
        .filter(|expected| !(text(expected, "check") == "V17" && row.differs_in("REQ-54")))
        .filter(|expected| !(text(expected, "check") == "V6" && row.differs_in("REQ-57")))
        .collect();
    for wanted in &expected {
        let mentions = |finding: &Finding| {
            items(wanted, "mentions").filter_map(Value::as_str).all(|word| finding.message.contains(word))
        };
        if !own.iter().any(|finding| is(wanted, finding) && mentions(finding)) {
            return Err(Stop::fail(format!("{member}: missing {wanted}, found {}", listed(own))));
        }
    }
    let other = own.iter().find(|finding| !expected.iter().any(|wanted| is(wanted, finding)));
    other.map_or(Ok(()), |finding| Err(Stop::fail(format!("{member}: unexpected {finding}"))))
}

fn listed(findings: &[&Finding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// A value without members that are null.
fn set(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            members.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name, set(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(set).collect(),
        other => other,
    }
}
