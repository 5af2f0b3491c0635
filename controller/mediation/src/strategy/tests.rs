use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// `fields` is a list of `name:type`; `!` marks required fields, `=` a default.
fn schema(fields: &str) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for field in fields.split_whitespace() {
        let (name, kind) = field.trim_end_matches('!').split_once(':').unwrap_or((field, ""));
        let (kind, default) = kind.split_once('=').map_or((kind, None), |(kind, value)| (kind, Some(value)));
        let mut property = if kind.is_empty() { json!({}) } else { json!({ "type": kind }) };
        if let Some(default) = default {
            property["default"] = json!(default);
        }
        properties.insert(name.to_owned(), property);
        if field.ends_with('!') {
            required.push(name);
        }
    }
    json!({"type": "object", "properties": properties, "required": required})
}

#[expect(clippy::needless_pass_by_value, reason = "the tests read better")]
fn check(source: &str, target: &str, data: Value, map: Option<Value>, expected: Expect) {
    let (source, target) = (schema(source), schema(target));
    let context = Context { trigger: json!({"text": "T"}), steps: Vec::new() };
    let map = map.and_then(|map| map.as_object().cloned());
    let plan = Plan { source: &source, target: &target, map: map.as_ref(), context: &context };
    let (report, outcome) = mediate(plan, data.as_object().expect("an object"));
    let outcome = match outcome {
        Ok(MediationResult::Data(data)) => Value::Object(data).to_string(),
        Ok(MediationResult::NeedsModel) => "needs a model".to_owned(),
        Err(error) => error.to_string(),
    };
    let open = [report.unmapped_required.join(","), report.unmapped_optional.join(",")].join(";");
    expected.assert_eq(&format!("{} {} open {open}: {outcome}", report.level.as_str(), report.confidence));
}

#[test]
fn fields_that_fit_are_passed_on() {
    check("a:string", "a:string!", json!({"a": "x", "b": 1}), None, expect![[r#"identical 1 open ;: {"a":"x"}"#]]);
    check("a:string", "", json!({"b": 1}), None, expect![[r#"identical 1 open ;: {"b":1}"#]]);
    check(
        "a:integer b:",
        "a:number! c:string",
        json!({"a": 1, "b": 2}),
        None,
        expect![[r#"superset 1 open ;c: {"a":1}"#]],
    );
}

#[test]
fn the_author_maps_fields() {
    let map = json!({"x": "$.trigger.text", "y": "a", "z": {"k": 1}, "w": "$.nothing", "v": "fixed"});
    check(
        "a:string",
        "x:string!",
        json!({"a": "A"}),
        Some(map),
        expect![[r#"mappable 0.95 open ;: {"x":"T","y":"A","z":{"k":1},"v":"fixed"}"#]],
    );
    let incomplete = json!({"y": "a"});
    check(
        "alpha:integer",
        "x:integer!",
        json!({}),
        Some(incomplete),
        expect!["incompatible 1 open x;: Schemas are incompatible: No viable transformation path found"],
    );
}

#[test]
fn fields_are_renamed_converted_and_filled_in() {
    check(
        "desc:string",
        "description:string!",
        json!({"desc": "v"}),
        None,
        expect![[r#"coercible 0.95 open ;: {"description":"v"}"#]],
    );
    check("n:string", "n:integer!", json!({"n": " 7"}), None, expect![[r#"coercible 0.9 open ;: {"n":7}"#]]);
    check(
        "n:string",
        "n:integer!",
        json!({"n": "x"}),
        None,
        expect![[r#"coercible 0.9 open ;: Strategy 'coerce' failed: field 'n': cannot convert "x" to integer"#]],
    );
    check(
        "n:string a:string",
        "n:integer a:string!",
        json!({"n": "x", "a": "b"}),
        None,
        expect![[r#"coercible 0.9 open ;: {"a":"b"}"#]],
    );
    check(
        "n:array a:string",
        "n:integer a:string!",
        json!({"n": [], "a": "b"}),
        None,
        expect![[r#"coercible 0.9 open ;n: {"a":"b"}"#]],
    );
    check(
        "a:string",
        "a:string! lim:string=5!",
        json!({"a": "b"}),
        None,
        expect![[r#"coercible 0.9 open ;: {"a":"b","lim":"5"}"#]],
    );
    // The source of one field is not the source of another.
    check(
        "text:string",
        "body_text:string! note_text:string!",
        json!({"text": "b"}),
        None,
        expect!["semantic 0.5 open body_text,note_text;: needs a model"],
    );
}

#[test]
fn what_has_no_way_fails() {
    check("body:array", "text:string!", json!({}), None, expect!["semantic 0.5 open text;: needs a model"]);
    check(
        "alpha:string",
        "zzz:integer!",
        json!({}),
        None,
        expect!["incompatible 1 open zzz;: Schemas are incompatible: No viable transformation path found"],
    );
}

/// Any JSON, also where a schema is expected.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), any::<i32>().prop_map(Value::from), "[a-c_]{0,4}".prop_map(Value::from)];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let key = prop_oneof![
            Just("properties".to_owned()),
            Just("required".to_owned()),
            Just("type".to_owned()),
            "[a-c_]{0,3}"
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_schema_and_no_data_panic(source in any_json(), target in any_json(), data in any_json(), map in any_json()) {
        let empty = Map::new();
        let context = Context { trigger: data.clone(), steps: vec![("a".into(), data.clone())] };
        let plan = Plan { source: &source, target: &target, map: map.as_object(), context: &context };
        let _ = mediate(plan, data.as_object().unwrap_or(&empty));
    }
}
