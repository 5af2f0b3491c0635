//! Answers, sound and broken.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::testing::{ask, check_answer, check_any, check_endless, decode, typed};

const STREAM: &str = include_str!("stream.txt");
const WHOLE: &str = include_str!("whole.json");

fn streamed(content_type: &str) -> Box<dyn Decoder> {
    protocol().decoder(&Request { stream: true, ..ask("hi") }, &typed(content_type))
}

fn events() -> Box<dyn Decoder> {
    streamed("text/event-stream")
}

fn whole() -> Box<dyn Decoder> {
    protocol().decoder(&ask("hi"), &typed("application/json"))
}

/// The pieces of the stream as the array that the provider sends without `alt=sse`.
fn array() -> String {
    let pieces: Vec<&str> = STREAM.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    format!("[{}\n]\n", pieces.join("\n,\r\n"))
}

#[test]
fn a_stream_is_read() {
    check_answer(
        events(),
        STREAM.as_bytes(),
        &expect![[r#"
        reasoning "They ask about "
        reasoning "the weather."
        text "Zürich "
        text "or Bern?"
        call 0 fc-1 weather
        arguments 0 {"city":"Bern"}
        call 1 call_1_1 clock
        arguments 1 {}
        answer Some("resp_-1") of gemini-3-pro-preview: Tools
          {"type":"reasoning","text":"They ask about the weather."}
          {"type":"text","text":"Zürich or Bern?"}
          {"type":"tool_call","id":"fc-1","name":"weather","arguments":{"city":"Bern"},"opaque":{"id":"fc-1","thoughtSignature":"c2ln"}}
          {"type":"tool_call","id":"call_1_1","name":"clock","arguments":{}}
          {"type":"reasoning","text":"","opaque":{"thoughtSignature":"bGFzdA=="}}
          {"input":53,"output":45,"cache_read":20,"cache_write":0,"reasoning":15}
          raw {"safetyRatings":[{"category":"HARM_CATEGORY_HARASSMENT","probability":"NEGLIGIBLE"}],"usageMetadata":{"promptTokensDetails":[{"modality":"TEXT","tokenCount":50}]}}
    "#]],
    );
}

#[test]
fn an_array_gives_the_same_events() {
    let (expected, error) = decode(events(), STREAM.as_bytes(), &[]);
    assert_eq!((expected, error), decode(streamed("application/json; charset=UTF-8"), array().as_bytes(), &[]));
}

#[test]
fn a_whole_answer_is_read() {
    check_answer(
        whole(),
        WHOLE.as_bytes(),
        &expect![[r#"
        answer Some("resp_2") of gemini-2.5-flash: End
          {"type":"reasoning","text":"Hm.","opaque":{"thoughtSignature":"dGhvdWdodA=="}}
          {"type":"text","text":"Done."}
          {"type":"reasoning","text":"","opaque":{"thoughtSignature":"dGV4dA=="}}
          {"input":11,"output":7,"cache_read":0,"cache_write":0,"reasoning":0}
          raw {"createTime":"2026-11-23T18:00:00Z","parts":[{"executableCode":{"language":"PYTHON","code":"1"}}],"groundingMetadata":{"webSearchQueries":["x"]},"usageMetadata":{"trafficType":"ON_DEMAND"}}
    "#]],
    );
}

#[test]
fn reasons_to_stop() {
    let check = |reason: &str, expected: &Expect| {
        let response = json!({"candidates": [{"finishReason": reason, "finishMessage": "because"}]});
        check_answer(whole(), response.to_string().as_bytes(), expected);
    };
    check(
        "STOP",
        &expect![[r#"
        answer None of m-1: End
          {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
          raw {"finishMessage":"because"}
    "#]],
    );
    check(
        "MAX_TOKENS",
        &expect![[r#"
            answer None of m-1: Length
              {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
              raw {"finishMessage":"because"}
        "#]],
    );
    check(
        "MALFORMED_FUNCTION_CALL",
        &expect![[r#"
            answer None of m-1: Other("MALFORMED_FUNCTION_CALL")
              {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
              raw {"finishMessage":"because"}
        "#]],
    );
    check(
        "SAFETY",
        &expect![[r#"
        filtered: the provider blocked the answer (SAFETY): because
    "#]],
    );
}

#[test]
fn errors_have_their_kind() {
    let check = |value: &Value, expected: &Expect| check_answer(whole(), value.to_string().as_bytes(), expected);
    check(
        &json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {}}),
        &expect![[r#"
        filtered: the provider blocked the request (PROHIBITED_CONTENT)
    "#]],
    );
    check(
        &json!({"usageMetadata": {}}),
        &expect![[r#"
        answer: the answer has no candidate
    "#]],
    );
    check(
        &json!({"candidates": [{"content": {"parts": []}}]}),
        &expect![[r#"
            answer: invalid response: the answer has no text and no tool calls
        "#]],
    );
    check(
        &json!({"candidates": [{"content": {"parts": [{"functionCall": {"args": {}}}]}}]}),
        &expect![[r#"
        answer: the answer calls a tool without a name
    "#]],
    );
    let error = json!({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}});
    check_answer(
        events(),
        format!("data: {error}\n\n").as_bytes(),
        &expect![[r#"
        provider: The model is overloaded.
    "#]],
    );
    check_answer(
        streamed("application/json"),
        format!("[{error}]").as_bytes(),
        &expect![[r#"
        provider: The model is overloaded.
    "#]],
    );
    check_answer(
        streamed("application/json"),
        b"[1]",
        &expect![[r#"
            provider: the provider sent a text instead of an answer: 1]
        "#]],
    );
    check_answer(
        streamed("application/json"),
        b"[{\"a\"]]",
        &expect![[r#"
            answer: a piece of the stream is not JSON: expected `:` at line 1 column 5: {"a"]
        "#]],
    );
    check_answer(
        streamed("text/html"),
        b"<html>",
        &expect![[r#"
        answer: the answer is text/html and not a stream: <html>
    "#]],
    );
    let cut = STREAM.split_once("\n\n").expect("two events").0;
    check_answer(
        events(),
        format!("{cut}\n\n").as_bytes(),
        &expect![[r#"
        reasoning "They ask about "
        connection: the connection ended before the answer was complete
    "#]],
    );
    let body = br#"{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"}}"#;
    let failure = protocol().failure(StatusCode::BAD_REQUEST, &HeaderMap::new(), body);
    expect!["credentials API key not valid. Please pass a valid API key."].assert_eq(&format!(
        "{} {}",
        failure.kind.name(),
        failure.message
    ));
}

#[test]
fn endless_answers_are_refused() {
    let check = |part: Value, expected: &Expect| {
        let piece = json!({"candidates": [{"content": {"parts": [part]}}]});
        check_endless(events(), b"\n", format!("data: {piece}\n\n").as_bytes(), expected);
    };
    let long = "x".repeat(1 << 16);
    check(json!({"functionCall": {"name": "f"}}), &expect!["answer: the answer calls more than 128 tools"]);
    check(json!({"text": long, "thought": true}), &expect!["answer: the answer is larger than 8388608 bytes"]);
    check(json!({"text": "", "thoughtSignature": long}), &expect!["answer: the answer is larger than 8388608 bytes"]);
    check(json!({"executableCode": {"code": long}}), &expect!["answer: the answer is larger than 8388608 bytes"]);
    check_endless(
        streamed("application/json"),
        b"[{",
        "\"a\": [".repeat(1000).as_bytes(),
        &expect!["answer: an event of the stream is larger than 8388608 bytes"],
    );
}

/// Pieces with the members that the protocol knows and any values.
fn piece() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "{}",
        "null",
        "{\"text\":\"a\"}",
        "{\"text\":\"t\",\"thought\":true}",
        "{\"text\":\"\",\"thoughtSignature\":\"s\"}",
        "{\"text\":\"t\",\"thought\":true,\"thoughtSignature\":7}",
        "{\"functionCall\":{\"name\":\"f\"}}",
        "{\"functionCall\":{\"id\":\"x\",\"name\":\"f\",\"args\":{\"a\":1}},\"thoughtSignature\":\"s\"}",
        "{\"inlineData\":{}}",
    ]);
    let rest = prop::sample::select(vec![
        "\"usageMetadata\":{\"promptTokenCount\":18446744073709551615,\"toolUsePromptTokenCount\":1}",
        "\"modelVersion\":7",
        "\"promptFeedback\":{}",
        "\"x\":[]",
    ]);
    let reason = prop::sample::select(vec!["null", "\"STOP\"", "\"SAFETY\"", "7"]);
    (part.clone(), part, rest, reason).prop_map(|(a, b, rest, reason)| {
        format!("{{\"candidates\":[{{\"content\":{{\"parts\":[{a},{b}]}},\"finishReason\":{reason}}}],{rest}}}")
    })
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(cuts: Vec<prop::sample::Index>) {
        prop_assert_eq!(decode(events(), STREAM.as_bytes(), &cuts), decode(events(), STREAM.as_bytes(), &[]));
        prop_assert_eq!(decode(whole(), WHOLE.as_bytes(), &cuts), decode(whole(), WHOLE.as_bytes(), &[]));
        let array = array();
        prop_assert_eq!(
            decode(streamed("application/json"), array.as_bytes(), &cuts),
            decode(events(), STREAM.as_bytes(), &[])
        );
    }

    #[test]
    fn any_bytes_give_an_answer_or_an_error(bytes: Vec<u8>) {
        check_any(events(), &bytes);
        check_any(streamed("application/json"), &bytes);
        check_any(whole(), &bytes);
    }

    #[test]
    fn any_pieces_give_an_answer_or_an_error(pieces in prop::collection::vec(piece(), 0..8)) {
        check_any(streamed("application/json"), format!("[{}]", pieces.join(",")).as_bytes());
        check_any(whole(), pieces.first().map(String::as_bytes).unwrap_or_default());
    }
}
