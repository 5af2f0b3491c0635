//! The default settings: what Atlas for Python does.

use expect_test::expect;
use serde_json::json;

use super::check::*;
use crate::{Format, Limits, Settings};

#[test]
fn json_answers_are_parsed() {
    check(
        with_tools(&[]),
        vec![start(json!({"text": "hé", "n": 1.0})), says(" {\"summary\": \"s\"}\n")],
        &expect![[r#"
            call
              user: {"text": "h\u00e9", "n": 1.0}
            finish (Answer): {"summary":"s"}
        "#]],
    );
    check(
        with_tools(&[]),
        vec![start(json!({})), answer(vec![text("[1,"), text(" 2]")])],
        &expect![[r#"
            call
              user: {}
            finish (Answer): [1,2]
        "#]],
    );
}

#[test]
fn other_answers_are_wrapped() {
    check(
        with_tools(&[]),
        vec![start(json!("x")), says(" ```json\n{}\n``` ")],
        &expect![[r#"
            call
              user: "x"
            finish (Answer): {"result":"```json\n{}\n```"}
        "#]],
    );
    check(
        Settings { format: Format::Text, ..with_tools(&[]) },
        vec![start(json!({})), says(" {\"a\": 1} ")],
        &expect![[r#"
            call
              user: {}
            finish (Answer): {"result":"{\"a\": 1}"}
        "#]],
    );
}

#[test]
fn tools_are_called_in_order_and_their_results_returned_together() {
    check(
        with_tools(&["reverse", "remote.add"]),
        vec![
            start(json!({})),
            answer(vec![
                text("Let me see."),
                tool("c1", "reverse", json!({"text": "é"})),
                tool("c2", "remote_add", json!({})),
            ]),
            returned(&[("c2", json!([1, 2])), ("c1", json!({"text": "é"}))]),
            says("done"),
        ],
        &expect![[r#"
            call
              user: {}
            tools: c1 reverse{"text":"é"}, c2 remote.add{}
            call
              assistant: Let me see. | c1 reverse{"text":"é"} | c2 remote_add{}
              user: c1 = {"text": "\u00e9"} | c2 = [1, 2]
            finish (Answer): {"result":"done"}
        "#]],
    );
}

#[test]
fn errors_of_tools_are_texts() {
    check(
        with_tools(&["a"]),
        vec![
            start(json!({})),
            calls(&[("c1", "a", json!({}))]),
            failed("c1", "ValueError", "boom"),
            calls(&[("c1", "nope", json!({}))]),
            says("{}"),
        ],
        &expect![[r#"
            call
              user: {}
            tools: c1 a{}
            call
              assistant: c1 a{}
              user: c1 = {"error": "ValueError: boom"}
            call
              assistant: c1 nope{}
              user: c1 = {"error": "SkillInvocationError: Skill 'nope' not available \u2014 declare it in requires.skills"}
            finish (Answer): {}
        "#]],
    );
}

#[test]
fn the_limit_of_requests_ends_the_turn_after_the_last_tools() {
    let limits = Limits { requests: 2, ..Limits::default() };
    check(
        Settings { limits, ..with_tools(&["a"]) },
        vec![
            start(json!({})),
            calls(&[("c1", "a", json!({}))]),
            returned(&[("c1", json!(1))]),
            calls(&[("c2", "a", json!({})), ("c3", "x", json!({}))]),
            returned(&[("c2", json!(1))]),
            says("too late"),
        ],
        &expect![[r#"
            call
              user: {}
            tools: c1 a{}
            call
              assistant: c1 a{}
              user: c1 = 1
            tools: c2 a{}
            finish (Limit): {"error":"max iterations reached","tools_used":["a","a","x"]}
        "#]],
    );
}

#[test]
fn a_failed_call_fails_the_turn_with_its_text() {
    check(
        with_tools(&[]),
        vec![start(json!({})), refused("slow down"), says("late")],
        &expect![[r#"
            call
              user: {}
            fail: slow down
        "#]],
    );
}

#[test]
fn requests_have_only_what_the_settings_say() {
    let mut turn = crate::Turn::new(Settings { system: "Be brief.".to_owned(), ..with_tools(&["a"]) });
    turn.step(start(json!({"text": "hi"})), &Typed);
    expect![[r#"
        {
          "model": "m",
          "system": "Be brief.",
          "messages": [
            {
              "role": "user",
              "parts": [
                {
                  "type": "text",
                  "text": "{\"text\": \"hi\"}"
                }
              ]
            }
          ],
          "tools": [
            {
              "name": "a",
              "description": "Tool: a",
              "input_schema": {
                "type": "object"
              }
            }
          ],
          "tool_choice": "auto",
          "max_tokens": 4096,
          "temperature": null,
          "top_p": null,
          "top_k": null,
          "stop": [],
          "output": null,
          "reasoning_effort": null,
          "idempotency_key": null,
          "stream": false,
          "extra": {}
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&turn.request()).expect("JSON"));
}
