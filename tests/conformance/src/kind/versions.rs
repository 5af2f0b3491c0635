//! Versions and requirements.

use atlas_contract::requirement::{self, Requirement};
use atlas_types::Version;
use serde_json::{Value, json};

use crate::matcher::Captures;
use crate::row::{Row, items, text};
use crate::verdict::{Judged, Stop, compare};

pub(super) fn judge(row: &Row) -> Judged {
    let answer = match row.kind.as_str() {
        "latest" => named(requirement::latest(versions(row, "versions")?)),
        "exact" => chosen(row.text("version"), versions(row, "versions")?),
        "range" => chosen(row.text("range"), versions(row, "versions")?),
        "best" => chosen(row.text("required"), versions(row, "published")?),
        "matches" => match Requirement::parse(row.text("required")) {
            Ok(required) => json!({"matches": required.matches(&version(row.text("available"))?)}),
            Err(error) => json!({"error": error.to_string()}),
        },
        _ => missing(row)?,
    };
    compare(&row.expect, &answer, &Captures::new())
}

/// The agents that a contract requires and that are not registered in a version that will do.
fn missing(row: &Row) -> Result<Value, Stop> {
    let mut missing = Vec::new();
    for wanted in items(&row.input, "requires_agents") {
        let registered = row.input["registered"].get(text(wanted, "name")).and_then(Value::as_str);
        let required = Requirement::parse(text(wanted, "version")).map_err(|error| Stop::fail(error.to_string()))?;
        let found = registered.map(version).transpose()?;
        if !found.is_some_and(|found| required.matches(&found)) {
            missing.push(wanted["name"].clone());
        }
    }
    Ok(json!({ "missing": missing }))
}

fn chosen(required: &str, versions: Vec<Version>) -> Value {
    match Requirement::parse(required) {
        Ok(required) => named(required.latest(versions)),
        Err(error) => json!({"error": error.to_string()}),
    }
}

fn named(found: Option<Version>) -> Value {
    json!({"version": found.map(|version| version.to_string())})
}

fn versions(row: &Row, member: &str) -> Result<Vec<Version>, Stop> {
    items(&row.input, member).filter_map(Value::as_str).map(version).collect()
}

/// Atlas registers versions of three numbers only, so that other texts never reach a rule.
fn version(text: &str) -> Result<Version, Stop> {
    text.parse().map_err(|_| Stop::skip(format!("versions such as \"{text}\", which no contract may have")))
}
