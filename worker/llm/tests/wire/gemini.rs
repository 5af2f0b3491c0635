//! The protocol of Gemini with a strict server.

use std::sync::Arc;
use std::time::Duration;

use atlas_llm::auth::Auth;
use atlas_llm::gemini::Gemini;
use expect_test::expect;
use serde_json::{Map, Value, json};

use crate::server::{Reply, Seen};
use crate::talk::{KEY, Provider, body, check_error, converse, ensure, header, list, text};

const MEMBERS: [&str; 4] = ["contents", "systemInstruction", "tools", "generationConfig"];

fn provider(strict: crate::server::Check) -> Provider {
    Provider {
        protocol: Arc::new(Gemini { auth: Auth::Key(KEY.into()) }),
        path: "/v1beta",
        model: "gemini-test",
        strict,
    }
}

fn whole(seen: &Seen) -> Result<(), String> {
    ensure(header(seen, "x-goog-api-key") == KEY, "x-goog-api-key")?;
    contents(body(seen, "/v1beta/models/gemini-test:generateContent", &MEMBERS)?)
}

fn streamed(seen: &Seen) -> Result<(), String> {
    ensure(header(seen, "x-goog-api-key") == KEY, "x-goog-api-key")?;
    contents(body(seen, "/v1beta/models/gemini-test:streamGenerateContent?alt=sse", &MEMBERS)?)
}

/// What the API accepts of the bodies of these tests.
pub(crate) fn contents(body: &Map<String, Value>) -> Result<(), String> {
    for tool in body.get("tools").map(|tools| list(&tools[0]["functionDeclarations"])).unwrap_or_default() {
        let has_schema = tool.get("parametersJsonSchema").is_some();
        ensure(has_schema == (tool["name"] == "weather"), "a schema, and none without parameters")?;
    }
    let mut calls = 0;
    for (at, content) in list(&body["contents"]).iter().enumerate() {
        ensure(content["role"] == if at % 2 == 0 { "user" } else { "model" }, "roles do not alternate")?;
        let parts = list(&content["parts"]);
        ensure(!parts.is_empty(), "no parts")?;
        let results = parts.iter().filter(|part| part.get("functionResponse").is_some()).count();
        ensure(results == calls, "every call has a result")?;
        for part in parts {
            let response = &part["functionResponse"];
            ensure(response.is_null() || response["response"].is_object(), "a response is an object")?;
            let is_signed = part.get("thoughtSignature") == Some(&json!("c2ln"));
            ensure(part["functionCall"]["name"] != "weather" || is_signed, "the signature is missing")?;
            let has_id = [&part["functionCall"], response].iter().any(|function| function.get("id").is_some());
            ensure(!has_id, "an id that the provider did not give")?;
        }
        calls = parts.iter().filter(|part| part.get("functionCall").is_some()).count();
    }
    ensure(calls == 0, "a call without a result")?;
    text(&body["contents"][0]["parts"][0]["text"], "the first text").map(drop)
}

/// The answers of a conversation: two calls, the first of them signed, then a text.
pub(crate) fn answers() -> [Value; 2] {
    let call = json!({"functionCall": {"name": "weather", "args": {"city": "Bern"}}, "thoughtSignature": "c2ln"});
    let thought = json!({"text": "Hm.", "thought": true});
    [answer(&json!([thought, call, {"functionCall": {"name": "clock"}}])), answer(&json!([{"text": "Sunny."}]))]
}

fn answer(parts: &Value) -> Value {
    let usage = json!({"promptTokenCount": 3, "candidatesTokenCount": 2});
    let candidate = json!({"content": {"role": "model", "parts": parts}, "finishReason": "STOP"});
    json!({"candidates": [candidate], "usageMetadata": usage})
}

#[test]
fn a_conversation_with_tools() {
    converse(&provider(whole), false, answers().map(|answer| Reply::json(200, &answer)));
    converse(&provider(streamed), true, answers().map(|answer| Reply::events(&[answer])));
    converse(&provider(streamed), true, answers().map(|answer| Reply::json(200, &json!([answer]))));
}

#[test]
fn hostile_answers_are_errors() {
    let check = |stream: bool, reply, expected: &expect_test::Expect| {
        check_error(&provider(if stream { streamed } else { whole }), stream, reply, expected);
    };
    check(
        false,
        Reply::new(200, "application/json", "{\"candidates\": ["),
        &expect![[r#"answer: the answer is not JSON: EOF while parsing a list at line 1 column 16: {"candidates": ["#]],
    );
    check(
        false,
        Reply::new(200, "text/html", "<html>"),
        &expect![
            "answer: the answer is not JSON: expected value at line 1 column 1: <html>: the API is not at localhost:1/…/models/gemini-test:generateContent; the base_url of"
        ],
    );
    let calls: Vec<Value> = (0..500).map(|_| json!({"functionCall": {"name": "f"}})).collect();
    check(false, Reply::json(200, &answer(&json!(calls))), &expect!["answer: the answer calls more than 128 tools"]);
    check(
        true,
        Reply::events(&[json!({"candidates": [{"content": {}}]})]),
        &expect!["connection: the connection ended before the answer was complete"],
    );
    check(
        true,
        Reply::json(200, &json!([{"candidates": [{"finishReason": "SAFETY"}]}])),
        &expect!["filtered: the provider blocked the answer (SAFETY)"],
    );
    check(
        true,
        Reply::new(200, "application/json", "[{").endless("\"x\": [".repeat(9999), Duration::ZERO),
        &expect!["answer: an event of the stream is larger than 8388608 bytes"],
    );
    let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}});
    check(true, Reply::events(&[blocked]), &expect!["filtered: the provider blocked the request (PROHIBITED_CONTENT)"]);
    let message = format!("API key {KEY} not valid. Please pass a valid API key.");
    let refused = json!([{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]);
    check(
        true,
        Reply::json(400, &refused),
        &expect!["request: API key [redacted] not valid. Please pass a valid API key."],
    );
}
