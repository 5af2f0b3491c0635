//! Schemas of inputs: each becomes the input schema of a contract.

use serde_json::{Value, json};

use crate::write::{Cases, Kind};

/// What is asked of an agent whose schema was taken: nothing in a schema makes a check that does not end.
pub(crate) const SUBMISSIONS: [&str; 2] = [
    r#"{"agent": "schema", "input": {"x": [1, {"x": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}], "child": {"child": {}}}}"#,
    r#"{"agent": "schema", "input": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}"#,
];

/// The contract around a schema. Text that is no JSON stands there as it is.
pub(crate) fn contract(schema: &[u8]) -> Vec<u8> {
    let head = br#"{"agent": {"name": "schema", "version": "1.0.0", "input": {"schema": "#;
    [head, schema, b"}}}"].concat()
}

pub(crate) fn cases() -> Cases {
    let mut cases = Cases::of(Kind::Schema);
    let mut add = |valid: bool, what: &str, schema: Value| {
        let text = schema.to_string();
        if valid { cases.accepted(what, text) } else { cases.refused(what, text) }
    };
    for kind in ["string", "number", "integer", "boolean", "null", "array", "object"] {
        add(true, kind, json!({ "type": kind }));
        add(false, &format!("{kind}-misspelt"), json!({ "type": format!("{kind}s") }));
    }
    let properties = |schema: Value| json!({ "type": "object", "properties": { "x": schema } });
    for (what, valid, wrong) in [
        ("enum", json!(["a", 1, null]), json!("a")),
        ("minLength", json!(1), json!(-1)),
        ("maxLength", json!(1), json!("1")),
        ("minimum", json!(-1.5), json!("0")),
        ("exclusiveMaximum", json!(3), json!(true)),
        ("multipleOf", json!(0.1), json!(0)),
        ("pattern", json!("^a+$"), json!("(")),
        ("items", json!({ "type": "string" }), json!(5)),
        ("prefixItems", json!([true]), json!({})),
        ("minItems", json!(1), json!(1.5)),
        ("uniqueItems", json!(true), json!("yes")),
        ("required", json!(["a"]), json!("a")),
        ("additionalProperties", json!(false), json!("no")),
        ("patternProperties", json!({ "^a": {} }), json!({ "[": {} })),
        ("propertyNames", json!({ "maxLength": 3 }), json!([])),
        ("minProperties", json!(1), json!(-1)),
        ("dependentRequired", json!({ "a": ["b"] }), json!({ "a": "b" })),
        ("allOf", json!([{}]), json!([])),
        ("anyOf", json!([{ "type": "string" }]), json!({})),
        ("oneOf", json!([true, false]), json!("x")),
        ("not", json!({}), json!([])),
        ("if", json!({ "type": "string" }), json!(1)),
        ("contains", json!({ "const": 5 }), json!(5)),
        ("const", json!({ "deep": [1] }), Value::Null),
        ("$defs", json!({ "a": { "type": "string" } }), json!([])),
        ("$ref", json!("#"), json!("other.json")),
        ("title", json!("x"), json!(5)),
    ] {
        add(true, what, properties(json!({ what: valid })));
        // Any value may be constant.
        if what != "const" {
            add(false, &format!("{what}-wrong"), properties(json!({ what: wrong })));
        }
    }
    add(true, "local-reference", json!({ "$defs": { "a": { "type": "string" } }, "$ref": "#/$defs/a" }));
    add(true, "recursive", json!({ "type": "object", "properties": { "child": { "$ref": "#" } } }));
    add(false, "dangling-reference", json!({ "$ref": "#/$defs/none" }));
    add(false, "remote-reference", json!({ "$ref": "http://localhost:1/schema.json" }));
    add(false, "file-reference", json!({ "$ref": "file:///etc/passwd" }));
    add(false, "identifier-inside", properties(json!({ "$id": "http://x/" })));
    hostile(&mut cases);
    let whole = r##"{"type":"object","properties":{"a":{"type":["string","null"],"pattern":"^x"},"b":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"array","items":{"minimum":3}}},"required":["a"],"additionalProperties":false}"##;
    cases.broken("broken", whole.as_bytes(), 30);
    cases
}

fn hostile(cases: &mut Cases) {
    let nested = (0..200).fold(json!({}), |inner, _| json!({ "not": inner }));
    cases.refused("too-deep", nested.to_string());
    let many: Vec<Value> = (0..30_000).map(|n| json!(n)).collect();
    cases.refused("too-many-values", json!({ "enum": many }).to_string());
    cases.refused("too-much-text", json!({ "description": "x".repeat(300 << 10) }).to_string());
    // Each definition asks for the next one twice; no input is checked with it, since that would not end.
    let mut definitions = serde_json::Map::new();
    for n in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
        definitions.insert(format!("d{n}"), json!({ "allOf": [next, next] }));
    }
    definitions.insert("d40".to_owned(), json!({}));
    cases.accepted("doubling", json!({ "$defs": definitions, "$ref": "#/$defs/d0" }).to_string());
    cases.accepted("circle", json!({ "$defs": { "a": { "$ref": "#/$defs/a" } }, "$ref": "#/$defs/a" }).to_string());
    for (what, pattern) in [
        ("pattern-backtracks", "^(a+)+$"),
        ("pattern-look-behind", "(?<=a)b"),
        ("pattern-counts", "a{1000}{1000}{1000}"),
        ("pattern-reference", "(a)\\1"),
        ("pattern-classes", "[\\w\\W]{0,65535}"),
        ("pattern-deep", "((((((((((((((((((((a))))))))))))))))))))"),
        ("pattern-unicode", "\\p{L}+"),
        ("pattern-nul", "\\u0000"),
    ] {
        cases.either(what, json!({ "type": "string", "pattern": pattern }).to_string());
    }
    for (what, text) in [
        ("no-json", "{"),
        ("text", "\"object\""),
        ("list", "[]"),
        ("number", "5"),
        ("boolean", "true"),
        ("infinity", "{\"minimum\": .inf}"),
        ("huge-limit", "{\"minLength\": 1e400}"),
    ] {
        cases.refused(what, text);
    }
}
