use std::process::Command;

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

fn check(language: Language, input: &Value, expected: &Expect) {
    expected.assert_eq(&written(language, "Types of a test.", "", input, &json!({"type": "object"})));
}

/// A schema with everything that is odd.
fn odd() -> Value {
    json!({
        "type": "object",
        "description": "What it takes. */ rm -rf\n\u{202e}hidden",
        "required": ["id", "kind", "undeclared"],
        "properties": {
            "id": {"type": "integer", "description": "its number"},
            "kind": {"enum": ["a", "b\"c", 3, 1.5, null, true]},
            "fixed": {"const": "x"},
            "maybe": {"type": ["string", "null"]},
            "open api": {"type": "string", "nullable": true},
            "class": {"type": "boolean"},
            "größe": {"type": "number"},
            "list": {"type": "array", "items": {"type": "array", "items": {"type": ["integer", "number", "string"]}}},
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false, "minItems": 2},
            "loose": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
            "tree": {"$ref": "#/$defs/tree-node"},
            "same": {"$ref": "#"},
            "outside": {"$ref": "https://example.com/x.json"},
            "missing": {"$ref": "#/$defs/none"},
            "loop": {"$ref": "#/$defs/loop"},
            "inner": {"type": "object", "properties": {"deep": {"type": "object", "properties": {"x": {"type": "null"}}}}},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "anything": {},
            "never": false,
            "either": {"oneOf": [{"type": "string"}, {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}]},
            "whole": {"allOf": [{"$ref": "#/$defs/base"}, {"properties": {"more": {"type": "string"}}, "required": ["more", "name"]}]},
            "one": {"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            "cased": {"type": "object", "properties": {"t": {"type": "string"}}, "oneOf": [
                {"properties": {"t": {"const": "x"}, "x": {"type": "integer"}}},
                {"properties": {"t": {"const": "y"}}},
            ]},
        },
        "$defs": {
            "tree-node": {"type": "object", "title": "A tree", "properties": {
                "children": {"type": "array", "items": {"$ref": "#/$defs/tree-node"}}}, "additionalProperties": {"type": "string"}},
            "loop": {"$ref": "#/$defs/loop"},
            "base": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
    })
}

#[test]
fn an_odd_schema_in_typescript() {
    check(
        Language::Ts,
        &odd(),
        &expect![[r#"
        // Types of a test.

        /** What it takes. * / rm -rf hidden */
        export interface Input {
          /** its number */
          id: number;
          kind: "a" | "b\"c" | 3 | 1.5 | null | true;
          fixed?: "x";
          maybe?: string | null;
          "open api"?: string | null;
          class?: boolean;
          "größe"?: number;
          list?: (number | string)[][];
          pair?: [string, number];
          loose?: unknown[];
          tree?: TreeNode;
          same?: Input;
          outside?: unknown;
          missing?: unknown;
          loop?: Loop;
          inner?: {
            deep?: {
              x?: null;
            };
          };
          map?: { [member: string]: number };
          anything?: unknown;
          never?: never;
          either?: string | {
            a: string;
          };
          whole?: {
            name: string;
            more: string;
          };
          one?: {
            a?: unknown;
            b?: unknown;
          };
          cased?: {
            t?: "x";
            x?: number;
          } | {
            t?: "y";
          };
          undeclared: unknown;
        }

        /** A tree */
        export interface TreeNode {
          children?: TreeNode[];
          [member: string]: unknown;
        }

        export type Loop = unknown;

        export type Output = { [member: string]: unknown };
    "#]],
    );
}

#[test]
fn an_odd_schema_in_python() {
    check(
        Language::Python,
        &odd(),
        &expect![[r#"
        # Types of a test.

        from __future__ import annotations

        from typing import Any, Literal, Never, NotRequired, TypeAlias, TypedDict


        class InputInnerDeep(TypedDict):
            x: NotRequired[None]


        class InputInner(TypedDict):
            deep: NotRequired[InputInnerDeep]


        class InputEither(TypedDict):
            a: str


        class InputWhole(TypedDict):
            name: str
            more: str


        class InputOne(TypedDict):
            a: NotRequired[Any]
            b: NotRequired[Any]


        class InputCased(TypedDict):
            t: NotRequired[Literal["x"]]
            x: NotRequired[int]


        class InputCased2(TypedDict):
            t: NotRequired[Literal["y"]]


        # What it takes. * / rm -rf hidden
        Input = TypedDict(
            "Input",
            {
                # its number
                "id": "int",
                "kind": "Literal[\"a\", \"b\\\"c\", 3, None, True] | float",
                "fixed": "NotRequired[Literal[\"x\"]]",
                "maybe": "NotRequired[str | None]",
                "open api": "NotRequired[str | None]",
                "class": "NotRequired[bool]",
                "größe": "NotRequired[float]",
                "list": "NotRequired[list[list[float | str]]]",
                "pair": "NotRequired[list[str | int]]",
                "loose": "NotRequired[list[Any]]",
                "tree": "NotRequired[TreeNode]",
                "same": "NotRequired[Input]",
                "outside": "NotRequired[Any]",
                "missing": "NotRequired[Any]",
                "loop": "NotRequired[Loop]",
                "inner": "NotRequired[InputInner]",
                "map": "NotRequired[dict[str, int]]",
                "anything": "NotRequired[Any]",
                "never": "NotRequired[Never]",
                "either": "NotRequired[str | InputEither]",
                "whole": "NotRequired[InputWhole]",
                "one": "NotRequired[InputOne]",
                "cased": "NotRequired[InputCased | InputCased2]",
                "undeclared": "Any",
            },
        )


        # A tree
        class TreeNode(TypedDict):
            children: NotRequired[list[TreeNode]]


        Loop: TypeAlias = "Any"


        Output: TypeAlias = "dict[str, Any]"
    "#]],
    );
}

#[test]
fn types_have_names_of_their_own() {
    let input = json!({"type": "object", "properties": {
        "a": {"$ref": "#/$defs/Any"}, "b": {"$ref": "#/$defs/3 d"}, "c": {"$ref": "#/definitions/Input"}, "d": {"$ref": "#/$defs/-"}},
        "$defs": {"Any": {"type": "string"}, "3 d": {"type": "string"}, "-": {"type": "string"}},
        "definitions": {"Input": {"type": "string"}}});
    check(
        Language::Ts,
        &input,
        &expect![[r#"
        // Types of a test.

        export interface Input {
          a?: AnyType;
          b?: T3D;
          c?: Input2;
          d?: Type;
        }

        export type AnyType = string;

        export type T3D = string;

        export type Input2 = string;

        export type Type = string;

        export type Output = { [member: string]: unknown };
    "#]],
    );
    let text = written(Language::Ts, "", "my-agent", &json!(true), &json!(false));
    assert_eq!(text, "// \n\nexport type MyAgentInput = unknown;\n\nexport type MyAgentOutput = never;\n");
}

/// A short document can be endless to follow, or as large as two to the power of its length.
#[test]
fn hostile_schemas_end() {
    let deep = (0..500).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    let definitions: serde_json::Map<String, Value> = (0..40)
        .map(|number| {
            let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
            (format!("d{number}"), json!({"allOf": [next, next], "properties": {format!("p{number}"): next}}))
        })
        .collect();
    let wide = json!({"$ref": "#/$defs/d0", "$defs": definitions});
    let itself =
        json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}], "anyOf": [{"$ref": "#"}], "properties": {"a": {"$ref": "#"}}});
    let many: Vec<usize> = (0..10_000).collect();
    let values = json!({"enum": many});
    for schema in [
        deep,
        wide,
        itself,
        values,
        json!(3),
        json!(null),
        json!({"type": 3, "properties": [], "enum": {}, "allOf": 1}),
    ] {
        for language in [Language::Ts, Language::Python] {
            assert!(written(language, "t", "", &schema, &schema).len() < 1_000_000);
        }
    }
}

/// Python itself reads what is written: the names, the quotes, and types that refer to each other.
#[test]
fn python_reads_its_types() {
    let text = written(Language::Python, "Types of a test.", "", &odd(), &json!({"type": "object"}));
    let script = format!("{text}\nimport typing\nprint(sorted(typing.get_type_hints(TreeNode)), Input.__total__)\n");
    let Ok(python) = atlas_dev::Python::find(None) else {
        atlas_notice::skip("no Python");
        return;
    };
    let output = Command::new(python.program).args(["-c", &script]).output().expect("Python starts");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "['children'] True\n");
}
