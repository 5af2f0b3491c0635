use std::time::{Duration, Instant};

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn check(schema: &Value, value: &Value, expected: &Expect) {
    let validator = Validator::compile(schema).expect("a valid schema");
    let violations = validator.validate(value).err().unwrap_or_default();
    assert_eq!(validator.is_valid(value), violations.is_empty());
    let lines: Vec<String> = violations.iter().map(|v| format!("{} {}: {}\n", v.pointer, v.rule, v.message)).collect();
    expected.assert_eq(&lines.concat());
}

fn refused(schema: &Value, expected: &Expect) {
    let error = Validator::compile(schema).map(|_| ()).expect_err("the schema is refused");
    expected.assert_eq(&error.to_string());
}

#[test]
fn only_the_bare_object_type_accepts_anything() {
    for schema in [json!({"type": "object"}), json!({})] {
        check(&schema, &json!(5), &expect![[""]]);
    }
    check(
        &json!({"type": "object", "properties": {}}),
        &json!(5),
        &expect![[r#"
        / type: 5 is not of type 'object'
    "#]],
    );
}

#[test]
fn violations_stand_in_the_order_of_the_schema() {
    let schema = json!({
        "properties": {"b": {"type": "string", "minLength": 2}, "a": {"enum": ["x", 1]}, "c": {"minimum": 0}},
        "required": ["d", "e"],
        "additionalProperties": false,
    });
    check(
        &schema,
        &json!({"a": "it's", "b": 5, "c": -0.5, "z": null, "y": []}),
        &expect![[r#"
        /b type: 5 is not of type 'string'
        /a enum: "it's" is not one of ['x', 1]
        /c minimum: -0.5 is less than the minimum of 0
        / required: 'd' is a required property
        / required: 'e' is a required property
        / additionalProperties: Additional properties are not allowed ('y', 'z' were unexpected)
    "#]],
    );
}

#[test]
fn texts_are_those_of_the_python_library() {
    let texts = [
        (json!({"type": ["string", "null"]}), json!(1)),
        (json!({"const": {"a": true}}), json!(null)),
        (json!({"minLength": 1}), json!("")),
        (json!({"minLength": 2}), json!("x")),
        (json!({"maxItems": 2}), json!([1, 2, 3])),
        (json!({"exclusiveMinimum": 0}), json!(0)),
        (json!({"multipleOf": 5}), json!(7)),
        (json!({"pattern": "^a"}), json!("ba")),
        (json!({"uniqueItems": true}), json!([1, 1.0])),
        (json!({"anyOf": [{"type": "string"}]}), json!(5)),
        (json!({"oneOf": [{"minimum": 1}, {"minimum": 2}]}), json!(5)),
        (json!({"not": {"type": "string"}}), json!("x")),
        (json!({"minProperties": 2}), json!({"a": 1})),
        (json!({"dependentRequired": {"a": ["b"]}}), json!({"a": 1})),
        (json!({"contains": {"type": "integer"}}), json!(["a"])),
        (json!({"contains": {"type": "integer"}, "minContains": 2}), json!([1, "a"])),
        (json!({"items": {"type": "integer"}}), json!([1, "a", true])),
        (json!({"prefixItems": [{}], "items": false}), json!([1, 2, 3])),
        (json!({"propertyNames": {"maxLength": 1}}), json!({"ab": 1})),
        (json!({"patternProperties": {"^x": {}}, "additionalProperties": false}), json!({"y": 1})),
        (json!({"unevaluatedProperties": false}), json!({"y": 1})),
        (json!({"if": {"type": "string"}, "then": {"minLength": 3}, "else": {"type": "integer"}}), json!("x")),
        (json!({"properties": {"a": false}}), json!({"a": 1})),
        (json!({"propertyNames": false}), json!({"a": 1, "b": 2})),
    ];
    let lines: Vec<String> = texts
        .iter()
        .flat_map(|(schema, value)| {
            let validator = Validator::compile(schema).expect("a valid schema");
            let violations = validator.validate(value).expect_err("the value does not fit");
            violations.into_iter().map(|v| format!("{} {}: {}\n", v.pointer, v.rule, v.message))
        })
        .collect();
    expect![[r#"
        / type: 1 is not of type 'string', 'null'
        / const: {'a': True} was expected
        / minLength: '' should be non-empty
        / minLength: 'x' is too short
        / maxItems: [1, 2, 3] is too long
        / exclusiveMinimum: 0 is less than or equal to the minimum of 0
        / multipleOf: 7 is not a multiple of 5
        / pattern: 'ba' does not match '^a'
        / uniqueItems: [1, 1.0] has non-unique elements
        / anyOf: 5 is not valid under any of the given schemas
        / oneOf: 5 is valid under each of {'minimum': 2}, {'minimum': 1}
        / not: 'x' should not be valid under {'type': 'string'}
        / minProperties: {'a': 1} does not have enough properties
        / dependentRequired: 'b' is a dependency of 'a'
        / contains: ['a'] does not contain items matching the given schema
        / minContains: Too few items match the given schema (expected at least 2 but only 1 matched)
        /1 type: 'a' is not of type 'integer'
        /2 type: True is not of type 'integer'
        / items: Expected at most 1 item but found 2 extra: [2, 3]
        / maxLength: 'ab' is too long
        / additionalProperties: 'y' does not match any of the regexes: '^x'
        / unevaluatedProperties: Unevaluated properties are not allowed ('y' was unexpected)
        / minLength: 'x' is too short
        / false: False schema does not allow 1
        / false: False schema does not allow 'a'
        / false: False schema does not allow 'b'
    "#]]
    .assert_eq(&lines.concat());
}

#[test]
fn references_and_formats_stay_inside() {
    let schema = json!({"$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}, "id": {"type": "integer"}}}}, "$ref": "#/$defs/n"});
    check(
        &schema,
        &json!({"next": {"next": {"id": "x"}}}),
        &expect![[r#"
        /next/next/id type: 'x' is not of type 'integer'
    "#]],
    );
    check(&json!({"format": "email", "type": "string"}), &json!("no address"), &expect![[""]]);
    check(
        &json!({"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": ["b"]}}),
        &json!({"a": 1}),
        &expect![[""]],
    );
    refused(
        &json!({"$ref": "https://example.com/schema.json"}),
        &expect!["at /$ref: only references within the schema are supported"],
    );
    refused(
        &json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}),
        &expect!["at /properties/a/$ref: only references within the schema are supported"],
    );
    refused(&json!({"$ref": "#/$defs/missing"}), &expect!["at /: Pointer '/$defs/missing' does not exist"]);
    refused(
        &json!({"allOf": [{"$id": "inner"}]}),
        &expect!["at /allOf/0/$id: an identifier inside a schema is not supported"],
    );
    check(&json!({"const": {"$ref": "https://example.com"}}), &json!({"$ref": "https://example.com"}), &expect![[""]]);
}

#[test]
fn a_wrong_schema_says_where() {
    refused(
        &json!({"type": "text"}),
        &expect![[r#"at /type: "text" is not valid under any of the schemas listed in the 'anyOf' keyword"#]],
    );
    refused(
        &json!({"properties": {"a": {"minLength": -1}}}),
        &expect!["at /properties/a/minLength: -1 is less than the minimum of 0"],
    );
    refused(
        &json!({"properties": {"a": {"pattern": "("}}}),
        &expect!["at /properties/a/pattern: '(' is not a supported pattern"],
    );
    refused(
        &json!({"pattern": "((a{1000}){1000}){1000}"}),
        &expect!["at /pattern: '((a{1000}){1000}){1000}' is not a supported pattern"],
    );
    refused(&json!({"enum": vec![1; 30_000]}), &expect!["the schema has more than 20000 values"]);
    refused(&(0..70).fold(json!({}), |below, _| json!({"not": below})), &expect!["the schema has more than 64 levels"]);
}

#[test]
fn patterns_are_python_and_find_anywhere() {
    for (pattern, fits, fails) in [
        ("b", "abc", "xyz"),
        ("^a$", "a\n", "a\n\n"),
        (r"^\d+$", "٣", "x"),
        (r"^\w+\Z", "é_1", "a b"),
        (r"^{.*}$", "{x}", "x"),
        (r"^(?P<q>['\x22]).*(?P=q)$", "'a'", "'a"),
        (r"^(?!x)", "y", "x"),
        ("(?i)^ab", "AB", "xAB"),
        (r"\Aab", "ab", "xab"),
        ("(?i:a)b", "Ab", "AB"),
        ("a++b", "aab", "aa"),
        (r"\bab\b", "x ab", "xab"),
        (r"^[\w.-]+@[\w-]+\.\w+$", "a.b@c-d.e", "a@b"),
        ("^[^\\s]+$", "ab", "a b"),
        (r"^\s+\S$", " \u{a0}x", "x"),
    ] {
        let validator = Validator::compile(&json!({"pattern": pattern})).expect("a pattern");
        assert!(validator.is_valid(&json!(fits)), "{pattern}");
        assert!(!validator.is_valid(&json!(fails)), "{pattern}");
    }
}

#[test]
fn hostile_patterns_and_schemas_end_soon() {
    let long = "a".repeat(50_000) + "!";
    let doubling = json!({"properties": {"n": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
    let deep = (0..60).fold(json!(1), |below, _| json!({"n": below}));
    let cases = [
        (json!({"pattern": "^(a+)+$"}), json!(long)),
        (json!({"pattern": "^(?=a)(a+)+$"}), json!(long)),
        (json!({"pattern": "^(?:a?){40}(?:a){40}(?<!b)$"}), json!("a".repeat(39))),
        (json!({"pattern": r"^(([a-z])+.)+[A-Z]([a-z])+$"}), json!(long)),
        (doubling, deep),
        (json!({"uniqueItems": true, "maxItems": 1}), json!((0..50_000).collect::<Vec<_>>())),
        (json!({"pattern": "(a|b)*a(a|b){5000}c"}), json!("ab".repeat(1_000_000))),
    ];
    for (schema, value) in cases {
        #[expect(clippy::disallowed_methods, reason = "the time it takes is what is tested")]
        let started = Instant::now();
        let validator = Validator::compile(&schema).expect("a valid schema");
        assert!(validator.validate(&value).is_err(), "{schema}");
        assert!(started.elapsed() < Duration::from_secs(30), "{schema} took {:?}", started.elapsed());
    }
}

#[test]
fn many_violations_are_bounded() {
    let validator = Validator::compile(&json!({"items": {"type": "string"}})).expect("a valid schema");
    let violations = validator.validate(&json!(vec![1; 10_000])).expect_err("none is text");
    assert_eq!(violations.len(), VIOLATIONS_MAX);
    let violations = validator.validate(&json!(vec![1; 600_000])).expect_err("none is text");
    assert_eq!(violations.len(), 1);
    // Every name is missing in every object: a hundred million violations for 20 KB of input.
    let names: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
    let validator = Validator::compile(&json!({"items": {"required": names}})).expect("a valid schema");
    let violations = validator.validate(&json!(vec![json!({}); 10_000])).expect_err("nothing is there");
    assert_eq!((violations.len(), violations[0].rule.as_str()), (1, "limit"));
}

#[test]
fn people_are_told_what_was_meant() {
    let schema = json!({
        "properties": {"name": {"minLength": 1}, "address": {"properties": {"city": {}}, "additionalProperties": false}},
        "required": ["name"],
        "additionalProperties": false,
    });
    let validator = Validator::compile(&schema).expect("a valid schema");
    let lines: Vec<String> = validator
        .explain(&json!({"nme": "Ada", "xyz": 1, "address": {"cty": ""}}))
        .into_iter()
        .map(|violation| format!("{} {}\n", violation.pointer, violation.message))
        .collect();
    expect![[r#"
        /address/cty not allowed here; did you mean "city"?
        / "name" is required
        /nme not allowed here; did you mean "name"?
        /xyz not allowed here
    "#]]
    .assert_eq(&lines.concat());
    assert_eq!(validator.explain(&json!({"name": "Ada"})), []);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3..5i64).prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
        Just(json!("object")),
        Just(json!("#")),
        Just(json!("(a|b)*$")),
    ];
    let key = prop_oneof![
        Just("type"),
        Just("properties"),
        Just("items"),
        Just("required"),
        Just("$ref"),
        Just("pattern"),
        Just("allOf"),
        Just("not"),
        Just("a"),
        Just("unevaluatedProperties"),
        Just("if"),
        Just("then"),
        Just("enum"),
        Just("minimum"),
    ];
    leaf.prop_recursive(4, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..4)
                .prop_map(|members| members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    // Compiling a schema takes milliseconds in a debug build.
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_schema_compiles_or_is_refused_and_any_value_is_answered(schema in any_json(), value in any_json()) {
        if let Ok(validator) = Validator::compile(&schema) {
            prop_assert_eq!(validator.validate(&value).is_ok(), validator.is_valid(&value));
            validator.explain(&value);
        }
    }

    #[test]
    fn any_pattern_is_read_or_refused(pattern in r"[-a-c\\.*+?^$()\[\]{}|,0-9&~dwsZP<=!:]{0,24}", text in "[a-c0-9]{0,8}") {
        if let Ok(validator) = Validator::compile(&json!({"pattern": pattern})) {
            let _ = validator.validate(&json!(text));
        }
    }
}

#[test]
fn a_required_member_that_is_there_is_not_missing() {
    let schema = json!({"required": ["e"], "properties": {}, "additionalProperties": false});
    let validator = Validator::compile(&schema).expect("a schema");
    let rules = |value: &Value| -> Vec<String> {
        validator.validate(value).err().into_iter().flatten().map(|violation| violation.rule).collect()
    };
    assert_eq!(rules(&json!({"e": 1})), ["additionalProperties"]);
    assert_eq!(rules(&json!({"a": 1})), ["required", "additionalProperties"]);
}
