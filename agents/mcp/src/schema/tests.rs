use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::for_models;

fn check(schema: &Value, wanted: &Expect) {
    let made = for_models(schema).map_or_else(|why| format!("refused: {why}"), |made| made.to_string());
    wanted.assert_eq(&made);
}

#[test]
fn sound_schemas_stay_as_they_are() {
    for schema in [
        json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null}}}),
        json!({"type": "object", "properties": {}, "additionalProperties": false}),
        json!({
            "type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"enum": [1, "x"], "title": "A"}}
        }),
    ] {
        assert_eq!(for_models(&schema), Ok(schema));
    }
}

#[test]
fn words_for_types_of_programming_languages_are_read() {
    check(
        &json!({"type": "OBJECT", "properties": {
            "a": {"type": "int"}, "b": {"type": "list", "items": {"type": "str"}}, "c": {"type": "any"},
            "d": {"type": ["float", "none"]}, "e": {"type": "string", "nullable": true}, "f": {"type": "datetime"},
            "g": {"type": "array"}, "h": true,
        }}),
        &expect![[
            r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"array","items":{"type":"string"}},"c":{},"d":{"type":["number","null"]},"e":{"type":["string","null"]},"f":{"type":"string","format":"date-time"},"g":{"type":"array","items":{}},"h":{}}}"#
        ]],
    );
    check(
        &json!({"properties": {"a": {"type": "quaternion"}}}),
        &expect!["refused: properties.a of its schema has the unknown type \"quaternion\""],
    );
}

#[test]
fn what_may_be_null_is_a_choice_where_there_is_no_type() {
    check(
        &json!({"properties": {
            "a": {"$ref": "#/$defs/A", "nullable": true, "description": "An A."}, "b": {"enum": [1, 2], "nullable": true},
            "c": {"anyOf": [{"type": "string"}], "nullable": true}, "d": {"allOf": [{"$ref": "#/$defs/A"}], "nullable": true},
            "e": {"nullable": true}, "f": {"enum": [1], "nullable": false},
        }, "$defs": {"A": {"type": "string"}}}),
        &expect![[
            r##"{"properties":{"a":{"description":"An A.","anyOf":[{"$ref":"#/$defs/A"},{"type":"null"}]},"b":{"anyOf":[{"enum":[1,2]},{"type":"null"}]},"c":{"anyOf":[{"type":"string"},{"type":"null"}]},"d":{"anyOf":[{"allOf":[{"$ref":"#/$defs/A"}]},{"type":"null"}]},"e":{},"f":{"enum":[1]}},"$defs":{"A":{"type":"string"}},"type":"object"}"##
        ]],
    );
}

#[test]
fn references_are_read_as_parts_of_addresses() {
    check(
        &json!({"$ref": "#/$defs/My%20%C3%A9", "$defs": {"My é": {"type": "object", "properties": {"a": {}}}}}),
        &expect![[
            r#"{"$defs":{"My é":{"type":"object","properties":{"a":{}}}},"type":"object","properties":{"a":{}}}"#
        ]],
    );
    check(
        &json!({"$ref": "#/$defs/100%", "$defs": {"100%": {"type": "object"}}}),
        &expect![[r#"{"$defs":{"100%":{"type":"object"}},"type":"object","properties":{}}"#]],
    );
    check(
        &json!({"$ref": "#/$defs/%FF", "$defs": {}}),
        &expect![[r##"refused: its schema refers to "#/$defs/%FF", which is not there"##]],
    );
}

#[test]
fn draft_4_and_3_become_draft_2020_12() {
    check(
        &json!({
            "$schema": "http://json-schema.org/draft-04/schema#", "id": "http://a.b/c", "type": "object",
            "properties": {
                "a": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false},
                "b": {"type": "string", "required": true, "minLength": "2", "maxLength": null},
                "id": {"type": "string", "required": false},
            },
            "dependencies": {"a": ["b"]},
        }),
        &expect![[
            r#"{"type":"object","properties":{"a":{"type":"number","maximum":9,"exclusiveMinimum":0},"b":{"type":"string","minLength":2},"id":{"type":"string"}},"dependentRequired":{"a":["b"]},"required":["b"]}"#
        ]],
    );
}

#[test]
fn tuples_have_items() {
    let array = |array: Value| json!({"type": "object", "properties": {"a": array}});
    check(
        &array(json!({"type": "array", "items": [{"type": "int"}, {"type": "string"}]})),
        &expect![[
            r#"{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{}}}}"#
        ]],
    );
    check(
        &array(json!({"type": "array", "items": [{"type": "number"}, {"type": "number"}], "additionalItems": false})),
        &expect![[
            r#"{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"number"},{"type":"number"}],"maxItems":2,"items":{"type":"number"}}}}"#
        ]],
    );
}

#[test]
fn a_choice_at_the_top_becomes_one_form_and_words() {
    check(
        &json!({
            "type": "object", "description": "Finds.", "properties": {"id": {"type": "string"}, "name": {"type": "string"}},
            "anyOf": [{"required": ["id"]}, {"required": ["name"]}],
        }),
        &expect![[
            r#"{"type":"object","description":"Finds. The arguments have at least one of these forms: (1) required: id; (2) required: name.","properties":{"id":{"type":"string"},"name":{"type":"string"}}}"#
        ]],
    );
    check(
        &json!({
            "oneOf": [
                {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "integer"}}, "required": ["kind", "x"]},
                {"$ref": "#/definitions/B"}, {"type": "null"},
            ],
            "definitions": {"B": {"title": "B", "type": "object", "properties": {"kind": {"const": "b"}}, "required": ["kind"]}},
        }),
        &expect![[
            r#"{"definitions":{"B":{"title":"B","type":"object","properties":{"kind":{"const":"b"}},"required":["kind"]}},"properties":{"kind":{"anyOf":[{"const":"a"},{"const":"b"}]},"x":{"type":"integer"}},"required":["kind"],"type":"object","description":"The arguments have exactly one of these forms: (1) kind = \"a\", x required: kind, x; (2) B: kind = \"b\" required: kind."}"#
        ]],
    );
    check(
        &json!({"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"$ref": "#/$defs/More"}],
            "$defs": {"More": {"properties": {"b": {"type": "string"}}, "required": ["b"], "additionalProperties": false}}}),
        &expect![[
            r#"{"$defs":{"More":{"properties":{"b":{"type":"string"}},"required":["b"],"additionalProperties":false}},"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"],"type":"object"}"#
        ]],
    );
    check(
        &json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"a": {}}}}}),
        &expect![[r#"{"$defs":{"A":{"type":"object","properties":{"a":{}}}},"type":"object","properties":{"a":{}}}"#]],
    );
}

#[test]
fn parts_within_parts_and_beside_references_keep_their_arguments() {
    let base = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    check(
        &json!({"type": "object", "additionalProperties": false, "$defs": {"Base": base},
            "oneOf": [{"allOf": [{"$ref": "#/$defs/Base"}, {"properties": {"x": {}}}]}, {"properties": {"a": {"type": "string"}}}]}),
        &expect![[
            r#"{"type":"object","$defs":{"Base":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}},"properties":{"a":{"type":"string"},"x":{}},"description":"The arguments have exactly one of these forms: (1) a, x required: a; (2) a."}"#
        ]],
    );
    check(
        &json!({"allOf": [{"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}, {"properties": {"c": {}}}]}),
        &expect![[r#"{"properties":{"a":{},"b":{},"c":{}},"type":"object"}"#]],
    );
    check(
        &json!({"$ref": "#/$defs/Base", "properties": {"b": {}}, "required": ["b"], "$defs": {"Base": base}}),
        &expect![[
            r#"{"properties":{"b":{},"a":{"type":"string"}},"required":["b","a"],"$defs":{"Base":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}},"type":"object"}"#
        ]],
    );
    check(
        &json!({"anyOf": [{"anyOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}],
            "properties": {"a": {}, "b": {}}}),
        &expect![[
            r#"{"properties":{"a":{},"b":{}},"type":"object","description":"Of the form (1): The arguments have at least one of these forms: (1) required: a; (2) required: b."}"#
        ]],
    );
}

#[test]
fn schemas_cannot_grow_without_bound() {
    let large = json!({"description": "x".repeat(2 << 20)});
    let reference = || json!({"$ref": "#/$defs/A"});
    let schema = |count: usize| json!({"anyOf": vec![reference(); count], "$defs": {"A": large}});
    assert_eq!(for_models(&schema(80_000)), Err("its references copy more than 4194304 bytes".to_owned()));
    let small = json!({"anyOf": vec![json!({"required": ["a"]}); 80_000]});
    assert_eq!(for_models(&small), Err("its schema has more than 64 parts and forms".to_owned()));
    let again = json!({"$ref": "#/$defs/A", "$defs": {"A": {"allOf": [reference(), reference()]}}});
    assert!(for_models(&again).is_err());
    let numbers: Vec<u32> = (0..500_000).chain(0..500_000).collect();
    let made = for_models(&json!({"properties": {"a": {"enum": numbers}}})).expect("a schema");
    assert_eq!(made["properties"]["a"]["enum"].as_array().map(Vec::len), Some(500_000));
    let names: Vec<String> = (0..100_000).map(|number| format!("n{number}")).collect();
    let made = for_models(&json!({"required": names, "allOf": [{"required": names}], "anyOf": [{"required": names}]}));
    assert_eq!(made.expect("a schema")["required"].as_array().map(Vec::len), Some(100_000));
    let tuples = (0..40).fold(json!({"type": "int"}), |inner, _| json!({"items": [inner], "additionalItems": false}));
    assert!(for_models(&json!({"properties": {"a": tuples}})).is_ok());
}

#[test]
fn what_cannot_be_rewritten_is_refused_with_its_place() {
    for (schema, wanted) in [
        (json!({"type": "array", "items": {}}), "its arguments are not an object but \"array\""),
        (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), "its arguments are not an object"),
        (
            json!({"properties": {"a": {"$ref": "http://a.b/c"}}}),
            "properties.a of its schema refers to another document",
        ),
        (json!({"$ref": "#/$defs/A"}), "its schema refers to \"#/$defs/A\", which is not there"),
        (json!({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}), "its schema refers to itself"),
        (json!({"properties": ["a"]}), "properties of its schema is not an object of schemas"),
        (json!({"properties": {"a": "string"}}), "properties.a of its schema is not a schema"),
        (json!({"properties": {"a": {"enum": "x"}}}), "properties.a of its schema has an \"enum\" that is not a list"),
        (json!({"properties": {"": {}}}), "it has an argument whose name no provider takes: \"\""),
    ] {
        assert_eq!(for_models(&schema), Err(wanted.to_owned()));
    }
}

#[test]
fn names_that_providers_refuse_are_written_otherwise() {
    check(
        &json!({"type": "object", "properties": {"uids[]": {"type": "array", "description": "Who."}}, "required": ["uids[]"]}),
        &expect![[
            r#"{"type":"object","properties":{"uids_x5b__x5d_":{"type":"array","description":"Who. The server calls it uids[].","items":{}}},"required":["uids_x5b__x5d_"]}"#
        ]],
    );
}

/// Schemas as servers write them, sound and not.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "int"})),
        Just(json!({"type": "string", "minLength": 1.0, "format": 1})),
        Just(json!({"type": ["number", "null"], "minimum": 0, "exclusiveMinimum": true})),
        Just(json!({"enum": ["a", "a", null]})),
        Just(json!({"type": "array", "items": [{"type": "bool"}], "additionalItems": false})),
        Just(json!({"multipleOf": 0, "maxItems": -1, "uniqueItems": "yes", "required": null})),
        Just(json!(true)),
        Just(json!("string")),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::btree_map("[a-c]{1,2}", inner.clone(), 0..4)
                .prop_map(|properties| json!({"type": "object", "properties": properties, "required": ["a", "a", 1]})),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|forms| json!({"anyOf": forms})),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|forms| json!({"allOf": forms, "not": {}})),
            inner.prop_map(|items| json!({"type": "list", "items": items})),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_made_is_sound_and_stays(schema in schemas()) {
        if let Ok(made) = for_models(&schema) {
            prop_assert!(jsonschema::draft202012::meta::is_valid(&made), "{}", made);
            prop_assert_eq!(&made["type"], "object");
            prop_assert!(["anyOf", "oneOf", "allOf", "not", "enum", "$ref"].iter().all(|name| made.get(name).is_none()));
            prop_assert_eq!(for_models(&made), Ok(made));
        }
    }
}
