//! Versions and requirements. In rows, a published version can be any text, but in a contract it has three numbers.

use atlas_contract::requirement::Requirement;
use serde_json::{Value, json};

use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items, text};

pub(super) fn judge(row: &Row) -> Judged {
    let answer = match row.kind.as_str() {
        "latest" => named(Requirement::Any.latest_published(versions(row, "versions"))),
        "exact" => exact(row),
        "range" => chosen(row, "range", "versions"),
        "best" => chosen(row, "required", "published"),
        "matches" => match Requirement::parse(row.text("required")) {
            Ok(required) => json!({"matches": required.matches_published(row.text("available"))}),
            Err(error) => json!({"error": error.to_string()}),
        },
        _ => missing(row)?,
    };
    compare(&row.expect, &answer, &Captures::new())
}

/// The required agents that are not registered in a matching version.
fn missing(row: &Row) -> Result<Value, Stop> {
    let mut missing = Vec::new();
    for wanted in items(&row.input, "requires_agents") {
        let registered = row.input["registered"].get(text(wanted, "name")).and_then(Value::as_str);
        let required = Requirement::parse(text(wanted, "version")).map_err(|error| Stop::fail(error.to_string()))?;
        if !registered.is_some_and(|found| required.matches_published(found)) {
            missing.push(wanted["name"].clone());
        }
    }
    Ok(json!({ "missing": missing }))
}

/// The version with exactly this text. A look-up would refuse a text that is not a valid requirement, but rows have
/// such versions.
fn exact(row: &Row) -> Value {
    match Requirement::parse(row.text("version")) {
        Ok(required @ Requirement::Exact(_)) => named(required.latest_published(versions(row, "versions"))),
        _ => named(versions(row, "versions").find(|version| *version == row.text("version"))),
    }
}

fn chosen(row: &Row, required: &str, published: &str) -> Value {
    match Requirement::parse(row.text(required)) {
        Ok(required) => named(required.latest_published(versions(row, published))),
        Err(error) => json!({"error": error.to_string()}),
    }
}

fn named(found: Option<&str>) -> Value {
    json!({ "version": found })
}

fn versions<'r>(row: &'r Row, member: &str) -> impl Iterator<Item = &'r str> {
    items(&row.input, member).filter_map(Value::as_str)
}
