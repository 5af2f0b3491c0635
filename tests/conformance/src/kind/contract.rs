//! `agent.yaml` and `skill.yaml`: text to its normalised object, or the kind of error.

use atlas_contract::{ContractError, Skill, SkillError, Violation};
use serde_json::{Value, json};

use crate::matcher::Captures;
use crate::row::Row;
use crate::verdict::{Judged, compare};

pub(super) fn contract(row: &Row) -> Judged {
    let answer = match atlas_contract::parse(row.text("yaml").as_bytes()) {
        Ok(contract) => json!({"valid": true, "contract": contract.to_json()}),
        Err(ContractError::NotAMapping { got }) => not_a_mapping(got),
        Err(ContractError::Rules { violations }) => broken(&violations),
        Err(error) => json!({"valid": false, "error_kind": "yaml", "error": error.to_string()}),
    };
    compare(&row.expect, &only(&row.expect, answer), &Captures::new())
}

pub(super) fn skill(row: &Row) -> Judged {
    let answer = match Skill::parse(row.text("yaml").as_bytes()) {
        Ok(skill) => json!({"valid": true, "skill": skill.to_json()}),
        Err(SkillError::NotAMapping { got }) => not_a_mapping(got),
        Err(SkillError::Rules { violations }) => broken(&violations),
        Err(error) => json!({"valid": false, "error_kind": "yaml", "error": error.to_string()}),
    };
    compare(&row.expect, &only(&row.expect, answer), &Captures::new())
}

fn not_a_mapping(got: impl Into<Value>) -> Value {
    json!({"valid": false, "error_kind": "not_a_mapping", "got": got.into()})
}

fn broken(violations: &[Violation]) -> Value {
    json!({"valid": false, "error_kind": "schema", "violations": listed(violations)})
}

/// Violations as rows write them.
pub(super) fn listed(violations: &[Violation]) -> Value {
    violations.iter().map(|violation| json!({"at": violation.pointer, "rule": violation.rule})).collect()
}

/// An error text is compared where the row has one.
fn only(expect: &Value, mut answer: Value) -> Value {
    if let (None, Some(members)) = (expect.get("error"), answer.as_object_mut()) {
        members.shift_remove("error");
    }
    answer
}
