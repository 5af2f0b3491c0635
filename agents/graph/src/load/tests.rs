//! Errors of documents.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Source, load};
use crate::Lines;

fn nearest(_: &str, _: &[&str]) -> Option<String> {
    None
}

#[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
#[track_caller]
fn check(document: Value, expected: &[&str]) {
    let lines = Lines::from([(String::new(), 1), ("/nodes".to_owned(), 4)]);
    let errors = load(Source { value: &document, lines: &lines, nearest }).err().map(|errors| errors.0);
    let shown: Vec<String> = errors.unwrap_or_default().iter().map(ToString::to_string).collect();
    assert_eq!(shown, expected, "{document}");
}

#[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
fn with_node(node: Value) -> Value {
    json!({"name": "g", "start": "a", "nodes": {"a": node}})
}

#[test]
fn types_are_checked_and_all_errors_reported() {
    check(
        json!([1]),
        &[
            "line 1: the document needs an object, and is a list",
            "line 1: the field \"name\" is missing",
            "line 1: the field \"start\" is missing",
            "line 1: the field \"nodes\" is missing",
        ],
    );
    check(
        json!({"name": [], "version": {}, "start": "a", "nodes": [], "settings": {"max_concurrency": -1}}),
        &[
            "line 1: /name needs text, and is a list",
            "line 1: /version needs text, and is an object",
            "line 1: /settings/max_concurrency needs a whole number that is not negative, and is a number",
            "line 4: /nodes needs an object, and is a list",
        ],
    );
}

/// As YAML is read by Loki: `version: 1.0` is the text "1.0" there, and `description:` without a value an empty one.
#[test]
fn outside_of_nodes_numbers_are_text_and_null_is_absent() {
    let end = json!({"type": "end", "id": 1, "description": null});
    check(
        json!({
            "name": 5, "version": 1.0, "description": null, "start": 1, "nodes": {"1": end}, "global_tools": [1, "a.sh"],
            "mcp_servers": null, "settings": null, "initial_state": null, "reducers": null, "variables": null,
        }),
        &[],
    );
    check(
        json!({"name": null, "version": 2, "start": null, "nodes": null}),
        &[
            "line 1: the version \"2\" is not supported; the only one is \"1.0\"",
            "line 1: the name is empty",
            "line 4: the graph has no nodes",
        ],
    );
    check(with_node(Value::Null), &["line 4: the field \"type\" is missing"]);
    check(with_node(json!({"type": "end", "output": 5})), &["line 4: /nodes/a/output needs text, and is a number"]);
}

#[test]
fn nodes_need_their_fields() {
    check(
        with_node(json!({"type": "approval", "question": "q", "options": ["x"], "on_other": 3})),
        &["line 4: /nodes/a/on_other needs text, and is a number", "line 4: the field \"routes\" is missing"],
    );
    check(with_node(json!({"prompt": "p"})), &["line 4: the field \"type\" is missing"]);
    check(
        with_node(json!({"type": "END"})),
        &["line 4: unknown node type \"END\"; the types are: llm, script, approval, input, rag, map, agent, end"],
    );
    check(
        with_node(json!({"type": "script", "script": "s", "state_updates": {"n": 5}, "next": {"x": 1}})),
        &[
            "line 4: /nodes/a/next needs a node id or a list of node ids, and is an object",
            "line 4: /nodes/a/state_updates needs an object of strings, and is an object",
        ],
    );
}

#[test]
fn the_structure_is_checked_once_the_types_are_right() {
    let end = json!({"type": "end", "id": "b"});
    check(
        json!({"name": "", "version": "2.0", "start": "x", "nodes": {"a": end}}),
        &[
            "line 1: the version \"2.0\" is not supported; the only one is \"1.0\"",
            "line 4: the id \"b\" of the node \"a\" differs from its key; remove the id, which is optional",
            "line 1: the name is empty",
            "line 1: the start node \"x\" does not exist; the nodes are: a",
        ],
    );
    check(json!({"name": "g", "start": "x", "nodes": {}}), &["line 4: the graph has no nodes"]);
    check(
        json!({"name": "g", "start": "a", "reducers": {"k": "add", "l": 1}, "nodes": {"a": {"type": "end"}}}),
        &[
            "line 1: unknown reducer \"add\"; the reducers are: append, extend, concat, sum, max, min, merge, overwrite",
            "line 1: /reducers/l needs the name of a reducer, and is a number",
        ],
    );
}

#[test]
fn null_is_the_same_as_absent_where_a_field_may_be_unset() {
    check(with_node(json!({"type": "llm", "prompt": "p", "tools": null, "model": null, "next": null})), &[]);
    check(with_node(json!({"type": "end", "output": null})), &["line 4: /nodes/a/output needs text, and is null"]);
}

/// Values that resemble a graph more or less.
fn documents() -> impl Strategy<Value = Value> {
    let names = "name|start|nodes|a|type|end|llm|map|next|settings|reducers|state_updates|over|prompt";
    let leaf = prop_oneof![Just(Value::Null), any::<i8>().prop_map(Value::from), names.prop_map(Value::from)];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(names, inner, 0..6).prop_map(|members| json!(members)),
        ]
    })
}

proptest! {
    #[test]
    fn any_document_is_read_or_refused(document in documents()) {
        let result = load(Source { value: &document, lines: &Lines::new(), nearest });
        if let Ok(loaded) = result {
            prop_assert!(loaded.graph.node(&loaded.graph.start).is_some());
        }
    }
}
