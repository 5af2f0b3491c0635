//! The messages protocol with a strict server.

use std::sync::Arc;
use std::time::Duration;

use atlas_llm::anthropic::Anthropic;
use atlas_llm::auth::Auth;
use expect_test::expect;
use serde_json::{Value, json};

use crate::server::{Reply, Seen};
use crate::talk::{KEY, Provider, body, check_error, converse, ensure, ensure_answered, header, list, text};

const MEMBERS: [&str; 6] = ["model", "max_tokens", "messages", "system", "tools", "stream"];

fn provider() -> Provider {
    Provider { protocol: Arc::new(Anthropic { auth: Auth::Key(KEY.into()) }), path: "", model: "claude-test", strict }
}

/// What the API accepts of the requests of these tests.
fn strict(seen: &Seen) -> Result<(), String> {
    let body = body(seen, "/v1/messages", &MEMBERS)?;
    ensure(header(seen, "x-api-key") == KEY && header(seen, "authorization").is_empty(), "x-api-key")?;
    ensure(header(seen, "anthropic-version") == "2023-06-01", "anthropic-version")?;
    messages(body)
}

/// The body without its headers, which Vertex AI takes too.
pub(crate) fn messages(body: &serde_json::Map<String, Value>) -> Result<(), String> {
    ensure(body["max_tokens"].as_u64().is_some_and(|limit| limit > 0), "max_tokens")?;
    for tool in body.get("tools").map(list).unwrap_or_default() {
        ensure(tool["input_schema"]["type"] == "object", "input_schema")?;
        text(&tool["name"], "the name of a tool")?;
    }
    let mut calls: Vec<String> = Vec::new();
    for message in list(&body["messages"]) {
        let content = list(&message["content"]);
        ensure(!content.is_empty() || message["content"].is_string(), "content")?;
        let of = |kind: &str, id: &str| -> Result<Vec<String>, String> {
            content.iter().filter(|block| block["type"] == kind).map(|block| text(&block[id], id)).collect()
        };
        let results = of("tool_result", "tool_use_id")?;
        ensure_answered(&calls, &results)?;
        let first = content.iter().take(results.len());
        ensure(first.into_iter().all(|block| block["type"] == "tool_result"), "results do not come first")?;
        for block in content {
            let is_sound = match block["type"].as_str() {
                Some("thinking") => block["signature"] == "c2ln" && block["thinking"] == "Hm.",
                Some("text") => block["text"] != "",
                Some("tool_use") => message["role"] == "assistant" && block["input"].is_object(),
                Some("tool_result") => message["role"] == "user" && block["content"].is_string(),
                _ => false,
            };
            ensure(is_sound, &format!("block {block}"))?;
        }
        calls = of("tool_use", "id")?;
    }
    ensure(calls.is_empty(), "a call without a result")
}

/// The replies of a conversation: two calls with reasoning before them, then a text.
pub(crate) fn replies() -> [Reply; 2] {
    let call = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"});
    let content = [thinking, call("a", "weather", json!({"city": "Bern"})), call("b", "clock", json!({}))];
    [message(&json!(content), "tool_use"), message(&json!([{"type": "text", "text": "Sunny."}]), "end_turn")]
}

fn message(content: &Value, reason: &str) -> Reply {
    let usage = json!({"input_tokens": 3, "output_tokens": 2});
    let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "claude-test-1",
        "content": content, "stop_reason": reason, "usage": usage});
    Reply::json(200, &message)
}

/// The same as events.
pub(crate) fn streams() -> [Reply; 2] {
    let start = json!({"type": "message_start", "message": {"model": "claude-test-1", "content": [], "usage": {"input_tokens": 3}}});
    let begin =
        |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let more = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    let end = |reason: &str| json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 2}});
    let last = json!({"type": "message_stop"});
    let call = |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let calls = [
        start.clone(),
        begin(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        more(0, json!({"type": "thinking_delta", "thinking": "Hm."})),
        more(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        stop(0),
        begin(1, call("a", "weather")),
        more(1, json!({"type": "input_json_delta", "partial_json": "{\"city\": \"Bern\"}"})),
        stop(1),
        begin(2, call("b", "clock")),
        stop(2),
        end("tool_use"),
        last.clone(),
    ];
    let text = more(0, json!({"type": "text_delta", "text": "Sunny."}));
    let answer = [start, begin(0, json!({"type": "text", "text": ""})), text, stop(0), end("end_turn"), last];
    [Reply::events(&calls), Reply::events(&answer)]
}

#[test]
fn a_conversation_with_tools() {
    converse(&provider(), false, replies());
    converse(&provider(), true, streams());
}

#[test]
fn hostile_answers_are_errors() {
    let check = |stream, reply, expected: &expect_test::Expect| check_error(&provider(), stream, reply, expected);
    check(
        false,
        Reply::new(200, "application/json", "{\"content\": ["),
        &expect![[r#"answer: the answer is not JSON: EOF while parsing a list at line 1 column 13: {"content": ["#]],
    );
    check(
        false,
        Reply::new(200, "text/html", "<html>"),
        &expect![
            "answer: the answer is not JSON: expected value at line 1 column 1: <html>: the API is not at localhost:1/v1/messages; the base_url of this model is what comes"
        ],
    );
    check(
        false,
        Reply::new(200, "application/json", "[").endless(vec![b'['; 65_536], Duration::ZERO),
        &expect!["answer: the answer is larger than 8388608 bytes"],
    );
    let calls: Vec<Value> = (0..500).map(|at| json!({"type": "tool_use", "id": at.to_string(), "name": "f"})).collect();
    check(false, message(&json!(calls), "tool_use"), &expect!["answer: the answer calls more than 128 tools"]);
    check(
        true,
        Reply::json(200, &json!({"type": "message"})),
        &expect!["answer: the answer is no message with content"],
    );
    check(
        true,
        Reply::events(&[json!({"type": "ping"})]).cut(),
        &expect!["connection: the connection ended before the answer was complete"],
    );
    let ping = json!({"type": "ping", "padding": "x".repeat(60_000)});
    check(
        true,
        Reply::events(&[]).endless(format!("data: {ping}\n\n"), Duration::ZERO),
        &expect!["answer: the stream is longer than 67108864 bytes"],
    );
    check(
        true,
        Reply::events(&[json!({"type": "ping"})]).wait(Duration::from_secs(30)),
        &expect!["timeout: nothing of the answer arrived for 20 s"],
    );
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    check(true, Reply::events(std::slice::from_ref(&overloaded)), &expect!["provider: Overloaded"]);
    check(true, Reply::json(529, &overloaded), &expect!["provider: Overloaded"]);
    let refused =
        json!({"type": "error", "error": {"type": "authentication_error", "message": format!("invalid key {KEY}")}});
    check(true, Reply::json(401, &refused), &expect!["credentials: invalid key [redacted]"]);
    check(
        true,
        Reply::new(307, "text/plain", "").header("location", "http://localhost:2/steal"),
        &expect!["answer: the provider answered 307 Temporary Redirect without a text"],
    );
}
