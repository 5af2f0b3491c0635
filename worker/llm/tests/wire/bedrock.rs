//! Amazon Bedrock with a strict server, which makes the signature of each request again.

use std::sync::Arc;
use std::time::Duration;

use atlas_llm::bedrock::{Access, Bedrock};
use expect_test::expect;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::server::{Check, Reply, Seen};
use crate::talk::{HOST, KEY, Provider, body, check_error, converse, ensure, ensure_answered, header, list, text};

const MEMBERS: [&str; 4] = ["messages", "system", "toolConfig", "inferenceConfig"];
const TOKEN: &str = "canary-session-token";
const STREAM: &str = "application/vnd.amazon.eventstream";

fn provider(strict: Check) -> Provider {
    let access = Access::Signed {
        access_key_id: "AKIDEXAMPLE".into(),
        secret_access_key: KEY.into(),
        session_token: Some(TOKEN.into()),
    };
    let protocol = Bedrock { access, region: "eu-central-1".into() };
    Provider { protocol: Arc::new(protocol), path: "", model: "anthropic.test-v1:0", strict }
}

fn whole(seen: &Seen) -> Result<(), String> {
    strict(seen, "/model/anthropic.test-v1%3A0/converse")
}

fn streamed(seen: &Seen) -> Result<(), String> {
    strict(seen, "/model/anthropic.test-v1%3A0/converse-stream")
}

fn strict(seen: &Seen, path: &str) -> Result<(), String> {
    let body = body(seen, path, &MEMBERS)?;
    ensure(header(seen, "x-amz-security-token") == TOKEN, "x-amz-security-token")?;
    ensure(header(seen, "authorization") == authorization(seen), "authorization")?;
    for tool in body.get("toolConfig").map(|config| list(&config["tools"])).unwrap_or_default() {
        ensure(tool["toolSpec"]["inputSchema"]["json"]["type"] == "object", "inputSchema")?;
    }
    let mut calls: Vec<String> = Vec::new();
    for message in list(&body["messages"]) {
        let of = |kind: &str| -> Result<Vec<String>, String> {
            let blocks = list(&message["content"]).iter().filter_map(|block| block.get(kind));
            blocks.map(|block| text(&block["toolUseId"], "toolUseId")).collect()
        };
        ensure_answered(&calls, &of("toolResult")?)?;
        for block in list(&message["content"]) {
            let reasoning = &block["reasoningContent"]["reasoningText"];
            ensure(reasoning.is_null() || *reasoning == json!({"text": "Hm.", "signature": "c2ln"}), "reasoning")?;
        }
        calls = of("toolUse")?;
    }
    ensure(calls.is_empty(), "a call without a result")
}

/// The signature as the service makes it, of the headers that a request to it has.
fn authorization(seen: &Seen) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let hash = |bytes: &[u8]| hex(&Sha256::digest(bytes));
    let mac = |key: &[u8], text: &str| {
        Hmac::<Sha256>::new_from_slice(key).expect("a key").chain_update(text).finalize().into_bytes().to_vec()
    };
    let date = header(seen, "x-amz-date");
    let names = "content-type;host;x-amz-date;x-amz-security-token";
    let path = seen.uri.path().replace('%', "%25");
    let headers =
        format!("content-type:application/json\nhost:{HOST}\nx-amz-date:{date}\nx-amz-security-token:{TOKEN}\n");
    let request = format!("POST\n{path}\n\n{headers}\n{names}\n{}", hash(&seen.bytes));
    let scope = "20261123/eu-central-1/bedrock/aws4_request";
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hash(request.as_bytes()));
    let first = format!("AWS4{KEY}").into_bytes();
    let key = scope.split('/').fold(first, |key, part| mac(&key, part));
    let signature = hex(&mac(&key, &text));
    format!("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{scope}, SignedHeaders={names}, Signature={signature}")
}

/// An event of a stream.
fn event(kind: &str, name: &str, payload: &Value) -> Vec<u8> {
    let mut headers = Vec::new();
    let name_header = if kind == "event" { ":event-type" } else { ":exception-type" };
    for (header, value) in [(":message-type", kind), (name_header, name)] {
        headers.push(u8::try_from(header.len()).expect("short"));
        headers.extend(header.bytes());
        headers.push(7);
        headers.extend(u16::try_from(value.len()).expect("short").to_be_bytes());
        headers.extend(value.bytes());
    }
    let payload = payload.to_string();
    let length = |bytes: usize| u32::try_from(bytes).expect("short").to_be_bytes();
    let mut frame = [length(16 + headers.len() + payload.len()), length(headers.len())].concat();
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame.extend(headers);
    frame.extend(payload.bytes());
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame
}

fn answer(content: &Value, reason: &str) -> Reply {
    let usage = json!({"inputTokens": 3, "outputTokens": 2});
    let message = json!({"role": "assistant", "content": content});
    Reply::json(200, &json!({"output": {"message": message}, "stopReason": reason, "usage": usage}))
}

fn stream(events: &[(&str, Value)]) -> Reply {
    let bytes: Vec<u8> = events.iter().flat_map(|(name, payload)| event("event", name, payload)).collect();
    Reply::new(200, STREAM, bytes)
}

#[test]
fn a_conversation_with_tools() {
    let call = |id: &str, name: &str| json!({"toolUse": {"toolUseId": id, "name": name, "input": {}}});
    let reasoning = json!({"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}});
    let calls = json!([reasoning, call("a", "weather"), call("b", "clock")]);
    converse(&provider(whole), false, [answer(&calls, "tool_use"), answer(&json!([{"text": "Sunny."}]), "end_turn")]);
    let more = |index: u64, delta: Value| ("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta}));
    let call = |index: u64, id: &str, name: &str| {
        let tool = json!({"toolUse": {"toolUseId": id, "name": name}});
        ("contentBlockStart", json!({"contentBlockIndex": index, "start": tool}))
    };
    let stop = |reason: &str| ("messageStop", json!({"stopReason": reason}));
    let last = || ("metadata", json!({"usage": {"inputTokens": 3, "outputTokens": 2}}));
    let calls = [
        ("messageStart", json!({"role": "assistant"})),
        more(0, json!({"reasoningContent": {"text": "Hm."}})),
        more(0, json!({"reasoningContent": {"signature": "c2ln"}})),
        call(1, "a", "weather"),
        more(1, json!({"toolUse": {"input": "{\"city\": \"Bern\"}"}})),
        call(2, "b", "clock"),
        stop("tool_use"),
        last(),
    ];
    let text = [more(0, json!({"text": "Sunny."})), stop("end_turn"), last()];
    converse(&provider(streamed), true, [stream(&calls), stream(&text)]);
}

#[test]
fn hostile_answers_are_errors() {
    let check = |stream: bool, reply, expected: &expect_test::Expect| {
        check_error(&provider(if stream { streamed } else { whole }), stream, reply, expected);
    };
    check(
        false,
        Reply::new(200, "application/json", "{\"output\": "),
        &expect![[r#"answer: the answer is not JSON: EOF while parsing a value at line 1 column 11: {"output":"#]],
    );
    let calls: Vec<Value> = (0..500).map(|at| json!({"toolUse": {"toolUseId": at.to_string(), "name": "f"}})).collect();
    check(false, answer(&json!(calls), "tool_use"), &expect!["answer: the answer calls more than 128 tools"]);
    check(
        true,
        Reply::new(200, "text/html", "<html>"),
        &expect![
            "answer: the answer is text/html and not a stream: <html>: the API is not at localhost:1/model/anthropic.test-v1%3A0/converse-stream; the base_url of this mode"
        ],
    );
    let mut damaged = event("event", "messageStart", &json!({}));
    damaged[20] ^= 1;
    check(true, Reply::new(200, STREAM, damaged), &expect!["answer: the checksum of an event does not match"]);
    check(
        true,
        Reply::new(200, STREAM, vec![b'x'; 100]),
        &expect!["answer: the checksum of the prelude of an event does not match"],
    );
    let delta = json!({"contentBlockIndex": 0, "delta": {"text": "x".repeat(60_000)}});
    let endless = stream(&[]).endless(event("event", "contentBlockDelta", &delta), Duration::ZERO);
    check(true, endless, &expect!["answer: the answer is larger than 8388608 bytes"]);
    check(
        true,
        stream(&[("messageStart", json!({}))]).cut(),
        &expect!["connection: the connection ended before the answer was complete"],
    );
    let exception = event("exception", "throttlingException", &json!({"message": "Too many requests"}));
    check(true, Reply::new(200, STREAM, exception), &expect!["rate_limited: Too many requests"]);
    let refused = json!({"message": format!("The security token {TOKEN} is expired")});
    check(true, Reply::json(403, &refused), &expect!["credentials: The security token [redacted] is expired"]);
}
