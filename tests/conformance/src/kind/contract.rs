//! `agent.yaml` and `skill.yaml`: the normalised object or the kind of error of a text, and single parts of a contract.

use std::error::Error;

use atlas_contract::{ContractError, Remote, Skill, SkillError, Violation};
use serde_json::{Value, json};

use crate::matcher::Captures;
use crate::result::{Judged, compare};
use crate::row::Row;

pub(super) fn contract(row: &Row) -> Judged {
    let answer = match atlas_contract::parse(row.text("yaml").as_bytes()) {
        Ok(contract) => json!({"valid": true, "contract": contract.to_json()}),
        Err(ContractError::NotAMapping { got }) => not_a_mapping(got),
        Err(ContractError::Rules { violations, .. }) => broken(&violations),
        Err(error @ ContractError::Conversion { .. }) => {
            // Atlas for Python stops at the first error.
            let is_value = error.violations().first().is_some_and(|violation| violation.rule == "value");
            refused(if is_value { "value_error" } else { "conversion" }, &error)
        }
        Err(error @ ContractError::Yaml(_)) => refused("yaml", &error),
    };
    compare(&row.expect, &only(&row.expect, answer), &Captures::new())
}

/// The normalised `permissions` of a contract without other members.
pub(super) fn permissions(row: &Row) -> Judged {
    part(row, &json!({"permissions": row.input["permissions"]}), "/permissions")
}

/// The normalised `requires.knowledge` of a contract without other members.
pub(super) fn knowledge(row: &Row) -> Judged {
    part(row, &json!({"requires": {"knowledge": row.input["requires_knowledge"]}}), "/requires/knowledge")
}

/// Compares one part of a normalised contract that has only `members`, a name and a version.
fn part(row: &Row, members: &Value, pointer: &str) -> Judged {
    let mut contract = json!({"name": "a", "version": "1.0.0"});
    for (name, value) in members.as_object().into_iter().flatten() {
        contract[name] = value.clone();
    }
    let contract = json!({ "agent": contract }).to_string();
    let answer = match atlas_contract::parse(contract.as_bytes()) {
        Ok(contract) => contract.to_json().pointer(pointer).cloned().unwrap_or_default(),
        Err(error) => json!({"error": error.to_string()}),
    };
    compare(&row.expect, &answer, &Captures::new())
}

/// A remote instance as a command line names it.
pub(super) fn remote(row: &Row) -> Judged {
    let answer = match Remote::parse(row.text("spec")) {
        Ok(remote) => json!({
            "ok": true,
            "name": remote.name,
            "url": remote.url,
            "token": remote.token.as_ref().map(|token| token.expose()),
            "transport": remote.transport,
            "timeout": remote.timeout,
        }),
        Err(error) => json!({"ok": false, "error": error.to_string()}),
    };
    compare(&row.expect, &only(&row.expect, answer), &Captures::new())
}

pub(super) fn skill(row: &Row) -> Judged {
    let answer = match Skill::parse(row.text("yaml").as_bytes()) {
        Ok(skill) => json!({"valid": true, "skill": skill.to_json()}),
        Err(SkillError::NotAMapping { got }) => not_a_mapping(got),
        Err(SkillError::Rules { violations }) => broken(&violations),
        Err(error @ SkillError::Yaml(_)) => refused("yaml", &error),
    };
    compare(&row.expect, &only(&row.expect, answer), &Captures::new())
}

fn not_a_mapping(got: impl Into<Value>) -> Value {
    json!({"valid": false, "error_kind": "not_a_mapping", "got": got.into()})
}

fn broken(violations: &[Violation]) -> Value {
    json!({"valid": false, "error_kind": "schema", "violations": listed(violations)})
}

fn refused(kind: &str, error: &dyn Error) -> Value {
    json!({"valid": false, "error_kind": kind, "error": error.to_string()})
}

/// Violations in the format of the rows. A violation of the schema `false` has no keyword.
pub(super) fn listed(violations: &[Violation]) -> Value {
    let rule = |violation: &Violation| Some(violation.rule.clone()).filter(|rule| rule != "false");
    violations.iter().map(|violation| json!({"at": violation.pointer, "rule": rule(violation)})).collect()
}

/// Removes the error text from the answer if the row does not expect one.
pub(super) fn only(expect: &Value, mut answer: Value) -> Value {
    if let (None, Some(members)) = (expect.get("error"), answer.as_object_mut()) {
        members.shift_remove("error");
    }
    answer
}
