//! The sample rows of the conformance suite for this crate.

#![cfg(test)]

use std::path::Path;

use atlas_contract::requirement::{self, Requirement};
use atlas_contract::same;
use atlas_contract::schema::Validator;
use atlas_contract::{ContractError, Skill, SkillError, Violation};
use atlas_types::Version;
use serde_json::{Value, json};

/// Runs every row of a file through `answer`, which returns what the row's `expect` must match.
fn check(file: &str, answer: impl Fn(&str, &Value) -> Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/rows").join(file);
    let rows = std::fs::read_to_string(&path).expect("the sample rows are part of the repository");
    let mut failed = Vec::new();
    for row in rows.lines() {
        let row: Value = serde_json::from_str(row).expect("a row is JSON");
        let actual = answer(row["kind"].as_str().expect("a row has a kind"), &row["in"]);
        let mut expected = row["expect"].clone();
        if let Some(members) = expected.as_object_mut() {
            members.remove("informative");
        }
        if !same(&expected, &actual) {
            failed.push(format!("{}: expected {expected}, got {actual}", row["id"]));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn listed(violations: &[Violation]) -> Value {
    violations.iter().map(|violation| json!({"at": violation.pointer, "rule": violation.rule})).collect()
}

fn text<'a>(input: &'a Value, name: &str) -> &'a str {
    input[name].as_str().unwrap_or_default()
}

#[test]
fn contracts() {
    check("contracts.jsonl", |_, input| match atlas_contract::parse(text(input, "yaml").as_bytes()) {
        Ok(contract) => json!({"valid": true, "contract": contract.to_json()}),
        Err(ContractError::NotAMapping { got }) => json!({"valid": false, "error_kind": "not_a_mapping", "got": got}),
        Err(ContractError::Rules { violations, .. }) => {
            json!({"valid": false, "error_kind": "schema", "violations": listed(&violations)})
        }
        Err(error) => json!({"valid": false, "error": error.to_string()}),
    });
}

#[test]
fn skills() {
    check("skills.jsonl", |_, input| match Skill::parse(text(input, "yaml").as_bytes()) {
        Ok(skill) => json!({"valid": true, "skill": skill.to_json()}),
        Err(SkillError::NotAMapping { got }) => json!({"valid": false, "error_kind": "not_a_mapping", "got": got}),
        Err(SkillError::Rules { violations }) => {
            json!({"valid": false, "error_kind": "schema", "violations": listed(&violations)})
        }
        Err(error) => json!({"valid": false, "error": error.to_string()}),
    });
}

#[test]
fn schemas() {
    check("schema.jsonl", |_, input| {
        let validator = Validator::compile(&input["schema"]).expect("the sample schemas are valid");
        let violations = validator.validate(&input["data"]).err().unwrap_or_default();
        json!({"valid": violations.is_empty(), "violations": listed(&violations)})
    });
}

#[test]
fn versions() {
    let version = |text: &str| text.parse::<Version>().expect("a version");
    let list = |input: &Value, name: &str| -> Vec<Version> {
        input[name].as_array().expect("a list").iter().filter_map(Value::as_str).map(version).collect()
    };
    let requirement = |text: &str| Requirement::parse(text).expect("a requirement");
    let named = |found: Option<Version>| json!({"version": found.map(|version| version.to_string())});
    check("semver.jsonl", |kind, input| match kind {
        "latest" => named(requirement::latest(list(input, "versions"))),
        "exact" => named(requirement(text(input, "version")).latest(list(input, "versions"))),
        "range" => named(requirement(text(input, "range")).latest(list(input, "versions"))),
        "best" => named(requirement(text(input, "required")).latest(list(input, "published"))),
        "matches" => {
            let available = version(text(input, "available"));
            json!({"matches": requirement(text(input, "required")).matches(&available)})
        }
        "missing" => {
            let wanted = input["requires_agents"].as_array().expect("a list").iter();
            let missing = wanted.filter(|dependency| {
                let registered = input["registered"][text(dependency, "name")].as_str().map(version);
                !registered.is_some_and(|found| requirement(text(dependency, "version")).matches(&found))
            });
            json!({"missing": missing.map(|dependency| dependency["name"].clone()).collect::<Vec<_>>()})
        }
        other => panic!("rows of kind {other} are new"),
    });
}
