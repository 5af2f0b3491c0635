//! Derived schemas as the interface shows them.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::{From, SHAPES, Shape};

/// Marks a member of an answer that may be missing and may be null as well. Another one that may be missing is never null.
const NULL_TOO: &str = "x-null";

/// The schemas, by name.
pub fn schemas() -> &'static Map<String, Value> {
    static ALL: LazyLock<Map<String, Value>> = LazyLock::new(derived);
    &ALL
}

fn derived() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.definitions_path = "/components/schemas".into();
    });
    let mut requests = settings.clone().for_deserialize().into_generator();
    let mut answers = settings.for_serialize().into_generator();
    let one = |(from, shape): &(From, Shape)| {
        let generator = if *from == From::Client { &mut requests } else { &mut answers };
        let mut schema = (shape.schema)(generator).to_value();
        show(&mut schema, *from);
        (shape.name().into_owned(), schema)
    };
    SHAPES.iter().map(one).collect()
}

/// Takes from a schema what says nothing, and from those of answers what only readers do.
fn show(schema: &mut Value, from: From) {
    let Some(members) = schema.as_object_mut() else {
        *schema = Value::Object(Map::new());
        return;
    };
    if let Some(Value::String(text)) = members.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    if members.get("additionalProperties") == Some(&Value::Bool(true)) {
        members.remove("additionalProperties");
    }
    if from == From::Server {
        members.remove("default");
    }
    for below in ["items", "additionalProperties"] {
        if let Some(schema) = members.get_mut(below).filter(|schema| schema.is_object()) {
            show(schema, from);
        }
    }
    for forms in ["anyOf", "oneOf"] {
        if let Some(Value::Array(forms)) = members.get_mut(forms) {
            forms.iter_mut().for_each(|form| show(form, from));
        }
    }
    let required = members.get("required").cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = members.get_mut("properties") else { return };
    for (name, member) in properties {
        show(member, from);
        let is_required = required.as_array().is_some_and(|required| required.iter().any(|known| known == name));
        let null_too = member.as_object_mut().is_some_and(|member| member.remove(NULL_TOO).is_some());
        if from == From::Server && !is_required && !null_too {
            never_null(member);
        }
    }
}

/// Takes null from the values of a member.
fn never_null(member: &mut Value) {
    let is_null = |schema: &Value| schema["type"] == "null";
    match member["anyOf"].as_array().map(Vec::as_slice) {
        Some([one, null]) if is_null(null) => {
            let mut one = one.clone();
            if let (Some(one), Some(says)) = (one.as_object_mut(), member.get("description")) {
                one.insert("description".to_owned(), says.clone());
            }
            *member = one;
        }
        _ => {}
    }
    let Some(Value::Array(kinds)) = member.get_mut("type") else { return };
    kinds.retain(|kind| kind != "null");
    if let [one] = &kinds[..] {
        member["type"] = one.clone();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use expect_test::{Expect, expect};

    use super::*;
    use crate::types::{Job, TokenRequest};

    #[track_caller]
    fn check(pointer: &str, expected: &Expect) {
        let schemas = Value::Object(schemas().clone());
        expected.assert_eq(&schemas.pointer(pointer).expect("a schema").to_string());
    }

    #[test]
    fn every_shape_has_a_name_of_its_own() {
        let names: BTreeSet<_> = SHAPES.iter().map(|(_, shape)| shape.name()).collect();
        assert_eq!(names.len(), SHAPES.len());
        assert_eq!(schemas().len(), SHAPES.len());
    }

    #[test]
    fn members_of_answers_are_required_unless_they_may_be_missing() {
        check(
            "/Fired",
            &expect![[
                r#"{"type":"object","properties":{"job_id":{"type":"string","description":"its id"}},"required":["job_id"],"description":"The job of a firing."}"#
            ]],
        );
        check(
            "/BatchResult",
            &expect![[
                r##"{"type":"object","properties":{"id":{"type":"string","description":"the job is queued, possibly by an earlier request with the same key","pattern":"^job-[0-9a-f]{16}$"},"error":{"$ref":"#/components/schemas/Problem"}},"description":"Result for one job: one of these members.","minProperties":1,"maxProperties":1}"##
            ]],
        );
        check(
            "/Agent/properties/deprecated",
            &expect![[
                r#"{"type":["string","null"],"description":"deprecation message; null if not deprecated; with `view=full`"}"#
            ]],
        );
        check(
            "/Agent/properties/circuit",
            &expect![[
                r##"{"$ref":"#/components/schemas/Circuit","description":"whether jobs start on it although attempts fail; with `view=full`"}"##
            ]],
        );
        check(
            "/Node/properties/drain_ends_at",
            &expect![[
                r#"{"type":["number","null"],"format":"double","description":"Unix seconds by which its worker returns running jobs; null without a deadline"}"#
            ]],
        );
    }

    #[test]
    fn requests_tell_bounds_defaults_and_whether_they_are_closed() {
        check(
            "/BackfillRequest",
            &expect![[
                r#"{"type":"object","additionalProperties":false,"properties":{"from":{"type":"number","format":"double","description":"Unix seconds"},"to":{"type":"number","format":"double","description":"Unix seconds"},"dry_run":{"type":"boolean","description":"only list the times","default":false}},"required":["from","to"],"description":"Times to make up for."}"#
            ]],
        );
        check(
            "/Fork/properties/model",
            &expect![[
                r#"{"type":["string","null"],"description":"the model or tier that it calls after them; defaults to that of the other job","maxLength":255}"#
            ]],
        );
        check("/TokenRequest/oneOf/0/additionalProperties", &expect!["false"]);
    }

    #[test]
    fn reading_is_lenient_where_requests_are_not_closed() {
        let job: Job = serde_json::from_str(r#"{"id": "job-1", "of_a_newer_server": 1}"#).expect("a job");
        assert_eq!(job, Job { id: "job-1".to_owned(), ..Job::default() });
        let read = |text: &str| serde_json::from_str::<TokenRequest>(text);
        assert!(matches!(read("{}"), Ok(TokenRequest::Controller(_))));
        assert!(matches!(read(r#"{"kind": "worker", "node": "n1"}"#), Ok(TokenRequest::Worker(_))));
        assert!(read(r#"{"nodes": "n1"}"#).is_err());
    }
}
