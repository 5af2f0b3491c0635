//! Answers of a broken or hostile model, and a driver that makes mistakes.

use expect_test::expect;
use serde_json::{Value, json};

use super::check::*;
use crate::{Effect, Event, Limits, Settings, Turn};

#[test]
fn arguments_that_are_no_object_are_returned() {
    check(
        with_tools(&["a"]),
        vec![
            start(json!({})),
            calls(&[
                ("1", "a", json!("{\"x\": ")),
                ("2", "a", json!([1])),
                ("3", "a", Value::Null),
                ("4", "a", json!("7")),
            ]),
        ],
        &expect![[r#"
            call
              user: {}
            tools: 3 a{}
        "#]],
    );
    check(
        with_tools(&["a"]),
        vec![start(json!({})), calls(&[("1", "a", json!("{\"x\": ")), ("4", "a", json!("7"))])],
        &expect![[r#"
            call
              user: {}
            call
              assistant: 1 a{} | 4 a{}
              user: 1 = {"error": "JSONDecodeError: the arguments are not JSON (EOF while parsing a value at line 1 column 6); they begin with: {\"x\": "} | 4 = {"error": "JSONDecodeError: the arguments are not a JSON object; they begin with: 7"}
        "#]],
    );
}

#[test]
fn too_many_calls_are_not_made_and_each_has_a_result() {
    let mut turn = Turn::new(with_tools(&["a"]));
    turn.step(start(json!({})), &Typed);
    let ids: Vec<String> = (0..500).map(|number| number.to_string()).collect();
    let many: Vec<(&str, &str, Value)> = ids.iter().map(|id| (id.as_str(), "a", json!({}))).collect();
    let effects = turn.step(calls(&many), &Typed);
    assert!(matches!(effects[..], [Effect::Call { .. }]));
    let results = &turn.messages()[2].parts;
    assert_eq!(results.len(), 500);
    assert!(format!("{:?}", results[499]).contains("500 calls in one answer, at most 128 are allowed; none was made"));
}

#[test]
fn ids_are_made_unique() {
    check(
        with_tools(&["a"]),
        vec![
            start(json!({})),
            calls(&[("x", "a", json!({})), ("x-2", "a", json!({})), ("x", "a", json!({})), ("", "a", json!({}))]),
            returned(&[("x", json!(1)), ("x-3", json!(3)), ("x-2", json!(2)), ("other", json!(0)), ("x", json!(9))]),
        ],
        &expect![[r#"
            call
              user: {}
            tools: x a{}, x-2 a{}, x-3 a{},  a{}
            call
              assistant: x a{} | x-2 a{} | x-3 a{} |  a{}
              user: x = 1 | x-2 = 2 | x-3 = 3 |  = {"error": "NoResult: the tool returned nothing"}
        "#]],
    );
}

#[test]
fn long_results_are_cut() {
    let limits = Limits { result_bytes: 8, ..Limits::default() };
    check(
        Settings { limits, ..with_tools(&["a"]) },
        vec![start(json!({})), calls(&[("1", "a", json!({}))]), returned(&[("1", json!("é".repeat(3)))])],
        &expect![[r#"
            call
              user: {}
            tools: 1 a{}
            call
              assistant: 1 a{}
              user: 1 = "\u00e9\
            [cut: these are the first 8 of 20 bytes]
        "#]],
    );
}

#[test]
fn events_out_of_order_fail() {
    check(
        with_tools(&["a"]),
        vec![says("early")],
        &expect![[r#"
            fail: the turn expected its start, and was told of an answer of the model
        "#]],
    );
    check(
        with_tools(&["a"]),
        vec![start(json!({})), Event::Returned(Vec::new()), says("late")],
        &expect![[r#"
            call
              user: {}
            fail: the turn expected an answer of the model, and was told of results of tools
        "#]],
    );
}

#[test]
fn an_empty_answer_is_an_empty_result() {
    check(
        with_tools(&["a"]),
        vec![start(json!({})), answer(Vec::new())],
        &expect![[r#"
            call
              user: {}
            finish (Answer): {"result":""}
        "#]],
    );
}
