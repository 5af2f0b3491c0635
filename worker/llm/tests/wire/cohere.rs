//! The chat protocol of Cohere with a strict server.

use std::sync::Arc;
use std::time::Duration;

use atlas_llm::auth::Auth;
use atlas_llm::cohere::Cohere;
use expect_test::expect;
use serde_json::{Value, json};

use crate::server::{Reply, Seen};
use crate::talk::{KEY, Provider, body, check_error, converse, ensure, ensure_answered, header, list, text};

fn provider() -> Provider {
    Provider { protocol: Arc::new(Cohere { auth: Auth::Key(KEY.into()) }), path: "/v2", model: "command-test", strict }
}

/// What the API accepts of the requests of these tests.
fn strict(seen: &Seen) -> Result<(), String> {
    let body = body(seen, "/v2/chat", &["model", "messages", "tools", "stream"])?;
    ensure(header(seen, "authorization") == format!("Bearer {KEY}"), "authorization")?;
    for tool in body.get("tools").map(list).unwrap_or_default() {
        ensure(tool["function"]["parameters"]["type"] == "object", "parameters")?;
    }
    let (mut calls, mut results): (Vec<String>, Vec<String>) = Default::default();
    for message in list(&body["messages"]) {
        match message["role"].as_str() {
            Some("tool") => results.push(text(&message["tool_call_id"], "tool_call_id")?),
            Some("assistant") => {
                ensure(message["tool_plan"] == "I look.", "the plan is missing")?;
                for call in list(&message["tool_calls"]) {
                    let arguments = text(&call["function"]["arguments"], "arguments")?;
                    ensure(
                        serde_json::from_str::<Value>(&arguments).is_ok_and(|value| value.is_object()),
                        "arguments",
                    )?;
                    calls.push(text(&call["id"], "id")?);
                }
            }
            Some("system" | "user") => ensure_answered(&calls, &results)?,
            _ => return Err("an unknown role".to_owned()),
        }
    }
    ensure_answered(&calls, &results)
}

fn usage() -> Value {
    json!({"tokens": {"input_tokens": 3, "output_tokens": 2}})
}

fn call(id: &str, name: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{\"city\": \"Bern\"}"}})
}

fn answer(message: &Value, reason: &str) -> Reply {
    Reply::json(200, &json!({"id": "1", "message": message, "finish_reason": reason, "usage": usage()}))
}

#[test]
fn a_conversation_with_tools() {
    let calls = json!({"tool_plan": "I look.", "tool_calls": [call("a", "weather"), call("b", "clock")]});
    let text = json!({"content": [{"type": "text", "text": "Sunny."}]});
    converse(&provider(), false, [answer(&calls, "TOOL_CALL"), answer(&text, "COMPLETE")]);
    let event =
        |kind: &str, index: u64, message: Value| json!({"type": kind, "index": index, "delta": {"message": message}});
    let end = |reason: &str| json!({"type": "message-end", "delta": {"finish_reason": reason, "usage": usage()}});
    let calls = [
        json!({"type": "message-start", "id": "1"}),
        event("tool-plan-delta", 0, json!({"tool_plan": "I "})),
        event("tool-plan-delta", 0, json!({"tool_plan": "look."})),
        event("tool-call-start", 0, json!({"tool_calls": call("a", "weather")})),
        event("tool-call-start", 1, json!({"tool_calls": {"id": "b", "function": {"name": "clock"}}})),
        event("tool-call-delta", 1, json!({"tool_calls": {"function": {"arguments": "{}"}}})),
        end("TOOL_CALL"),
    ];
    let text = [
        event("content-start", 0, json!({"content": {"type": "text", "text": ""}})),
        event("content-delta", 0, json!({"content": {"text": "Sunny."}})),
        end("COMPLETE"),
    ];
    converse(&provider(), true, [Reply::events(&calls), Reply::events(&text)]);
}

#[test]
fn hostile_answers_are_errors() {
    let check = |stream, reply, expected: &expect_test::Expect| check_error(&provider(), stream, reply, expected);
    check(
        false,
        Reply::new(200, "application/json", "{\"message\": "),
        &expect![[r#"answer: the answer is not JSON: EOF while parsing a value at line 1 column 12: {"message":"#]],
    );
    let calls: Vec<Value> = (0..500).map(|at| call(&at.to_string(), "f")).collect();
    check(
        false,
        answer(&json!({"tool_calls": calls}), "TOOL_CALL"),
        &expect!["answer: the answer calls more than 128 tools"],
    );
    check(
        true,
        Reply::new(200, "text/html", "<html>"),
        &expect![[
            r#"answer: the answer is text/html and not a stream: <html>: the API is not at localhost:1/…/chat; the base_url of this model ends with "/v2", or is left out"#
        ]],
    );
    check(
        true,
        Reply::events(&[json!({"type": "message-start"})]),
        &expect!["connection: the connection ended before the answer was complete"],
    );
    let piece = json!({"type": "content-delta", "delta": {"message": {"content": {"text": "x".repeat(60_000)}}}});
    check(
        true,
        Reply::events(&[]).endless(format!("data: {piece}\n\n"), Duration::ZERO),
        &expect!["answer: the answer is larger than 8388608 bytes"],
    );
    let end = json!({"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "the model broke"}});
    check(true, Reply::events(&[end]), &expect!["provider: the model broke"]);
    check(
        true,
        Reply::json(401, &json!({"message": format!("invalid api token {KEY}")})),
        &expect!["credentials: invalid api token [redacted]"],
    );
}
