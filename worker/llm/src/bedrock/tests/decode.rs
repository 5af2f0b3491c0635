//! Answers, sound and broken.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::bedrock::frames::tests::frame;
use crate::testing::{ask, check_answer, check_any, check_endless, decode, typed};

const STREAM: &str = include_str!("stream.txt");
const WHOLE: &str = include_str!("whole.json");

/// The event stream of lines with the name of an event and its JSON.
fn stream(lines: &str) -> Vec<u8> {
    let events = lines.lines().map(|line| line.split_once(' ').expect("a name and JSON"));
    events.flat_map(|(name, json)| event(name, json)).collect()
}

fn event(name: &str, json: &str) -> Vec<u8> {
    let headers = [(":message-type", "event"), (":event-type", name), (":content-type", "application/json")];
    frame(&headers, json.as_bytes())
}

fn streamed() -> Box<dyn Decoder> {
    let mut headers = typed("application/vnd.amazon.eventstream");
    headers.insert("x-amzn-requestid", "7c1f".parse().unwrap());
    protocol().decoder(&Request { stream: true, ..ask("hi") }, &headers)
}

fn whole() -> Box<dyn Decoder> {
    protocol().decoder(&ask("hi"), &typed("application/json"))
}

#[test]
fn a_stream_is_read() {
    check_answer(
        streamed(),
        &stream(STREAM),
        &expect![[r#"
        reasoning "They ask about "
        reasoning "the weather."
        text "Zürich "
        text "or Bern?"
        call 0 tooluse_1 weather
        arguments 0 {"city":
        arguments 0  "Bern"}
        call 1 tooluse_2 clock
        answer Some("7c1f") of m-1: Tools
          {"type":"reasoning","text":"They ask about the weather.","opaque":{"bedrockSignature":"c2ln"}}
          {"type":"reasoning","text":"","opaque":{"redactedContent":"cmVk"}}
          {"type":"text","text":"Zürich or Bern?"}
          {"type":"tool_call","id":"tooluse_1","name":"weather","arguments":{"city":"Bern"}}
          {"type":"tool_call","id":"tooluse_2","name":"clock","arguments":{}}
          {"input":442,"output":89,"cache_read":400,"cache_write":30,"reasoning":0}
          raw {"content":[{"index":2,"delta":{"citation":{"title":"Map"}}}],"additionalModelResponseFields":{"x":1},"usage":{"serverToolUsage":{}},"metrics":{"latencyMs":700}}
    "#]],
    );
}

#[test]
fn a_whole_answer_is_read() {
    check_answer(
        whole(),
        WHOLE.as_bytes(),
        &expect![[r#"
        answer None of m-1: Tools
          {"type":"reasoning","text":"Hm.","opaque":{"bedrockSignature":"c2ln"}}
          {"type":"reasoning","text":"","opaque":{"redactedContent":"cmVk"}}
          {"type":"text","text":"Done."}
          {"type":"tool_call","id":"tooluse_1","name":"weather","arguments":{"city":"Bern"}}
          {"input":11,"output":7,"cache_read":0,"cache_write":0,"reasoning":0}
          raw {"content":[{"index":3,"delta":{"citationsContent":{"citations":[]}}}],"metrics":{"latencyMs":551}}
    "#]],
    );
}

#[test]
fn reasons_to_stop() {
    check_answer(
        whole(),
        b"{\"output\": {\"message\": {\"content\": []}}}",
        &expect![[r#"
            answer: invalid response: the answer has no text and no tool calls
        "#]],
    );
    let check = |reason: &str, expected: &Expect| {
        let answer = json!({"output": {"message": {"content": []}}, "stopReason": reason});
        check_answer(whole(), answer.to_string().as_bytes(), expected);
    };
    check(
        "max_tokens",
        &expect![[r#"
        answer None of m-1: Length
          {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
    "#]],
    );
    check(
        "stop_sequence",
        &expect![[r#"
        answer None of m-1: Text
          {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
    "#]],
    );
    check(
        "guardrail_intervened",
        &expect![[r#"
        answer None of m-1: Refused
          {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
    "#]],
    );
    check(
        "malformed_tool_use",
        &expect![[r#"
        answer None of m-1: Other("malformed_tool_use")
          {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
    "#]],
    );
    check(
        "end_turn",
        &expect![[r#"
            answer None of m-1: End
              {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
        "#]],
    );
}

#[test]
fn exceptions_have_their_kind() {
    let check = |headers: &[(&str, &str)], payload: &str, expected: &Expect| {
        let text = event("contentBlockDelta", "{\"contentBlockIndex\":0,\"delta\":{\"text\":\"Hel\"}}");
        check_answer(streamed(), &[text, frame(headers, payload.as_bytes())].concat(), expected);
    };
    let exception = |kind| [(":message-type", "exception"), (":exception-type", kind)];
    check(
        &exception("throttlingException"),
        "{\"message\":\"Too many requests\"}",
        &expect![[r#"
        text "Hel"
        rate_limited: Too many requests
    "#]],
    );
    check(
        &exception("modelStreamErrorException"),
        "{\"message\":\"broken\",\"originalStatusCode\":500}",
        &expect![[r#"
            text "Hel"
            provider: broken
        "#]],
    );
    check(
        &exception("validationException"),
        "no JSON",
        &expect![[r#"
        text "Hel"
        request: validationException
    "#]],
    );
    let error = [(":message-type", "error"), (":error-code", "InternalServerException"), (":error-message", "oh")];
    check(
        &error,
        "",
        &expect![[r#"
        text "Hel"
        provider: oh
    "#]],
    );
    let failure = |status: u16, body: &[u8]| {
        let failure = protocol().failure(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), body);
        format!("{} {}", failure.kind.name(), failure.message)
    };
    expect!["credentials The security token included in the request is invalid."]
        .assert_eq(&failure(403, b"{\"message\":\"The security token included in the request is invalid.\"}"));
    expect!["provider The model failed."]
        .assert_eq(&failure(424, b"{\"message\":\"The model failed.\",\"originalStatusCode\":500}"));
    expect!["too_long Input is too long for requested model."]
        .assert_eq(&failure(400, b"{\"message\":\"Input is too long for requested model.\"}"));
    expect!["rate_limited Too many tokens, please wait before trying again."]
        .assert_eq(&failure(429, b"{\"message\":\"Too many tokens, please wait before trying again.\"}"));
}

#[test]
fn broken_streams_are_refused() {
    let start = stream(STREAM.lines().next().unwrap());
    let check =
        |bytes: Vec<u8>, expected: &Expect| check_answer(streamed(), &[start.clone(), bytes].concat(), expected);
    let mut damaged = event("contentBlockDelta", "{}");
    *damaged.last_mut().unwrap() ^= 1;
    check(
        damaged,
        &expect![[r#"
        answer: the checksum of an event does not match
    "#]],
    );
    check(
        b"<html>the proxy is down</html>".to_vec(),
        &expect![[r#"
        answer: the checksum of the prelude of an event does not match
    "#]],
    );
    check(
        event("contentBlockDelta", "{"),
        &expect![[r#"
            answer: a piece of the stream is not JSON: EOF while parsing an object at line 1 column 1: {
        "#]],
    );
    check(
        event("messageStop", "{\"stopReason\":\"end_turn\"}"),
        &expect![[r#"
            answer Some("7c1f") of m-1: End
              {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
        "#]],
    );
    check(
        Vec::new(),
        &expect![[r#"
        connection: the connection ended before the answer was complete
    "#]],
    );
    let text = |index| format!("contentBlockDelta {{\"contentBlockIndex\":{index},\"delta\":{{\"text\":\"x\"}}}}");
    check(
        stream(&[text(0), text(1), text(0)].join("\n")),
        &expect![[r#"
        text "x"
        text "x"
        answer: a piece of block 0 that is of another type or has ended
    "#]],
    );
    let call = "contentBlockDelta {\"contentBlockIndex\":0,\"delta\":{\"toolUse\":{\"input\":\"{}\"}}}";
    check(
        stream(call),
        &expect![[r#"
        answer: a piece of block 0 that is of another type or has ended
    "#]],
    );
    let reasoning = "contentBlockDelta {\"contentBlockIndex\":0,\"delta\":{\"reasoningContent\":{\"text\":\"x\"}}}";
    check(
        stream(&[&text(0), reasoning].join("\n")),
        &expect![[r#"
        text "x"
        answer: a piece of block 0 that is of another type or has ended
    "#]],
    );
    check_answer(
        whole(),
        b"{\"output\":{}}",
        &expect![[r#"
        answer: the answer is no message with content
    "#]],
    );
    let html = protocol().decoder(&Request { stream: true, ..ask("hi") }, &typed("text/html"));
    check_answer(
        html,
        b"<html>",
        &expect![[r#"
        answer: the answer is text/html and not a stream: <html>
    "#]],
    );
}

#[test]
fn endless_answers_are_refused() {
    let check = |name: &str, value: Value, expected: &Expect| {
        check_endless(streamed(), b"", &event(name, &value.to_string()), expected);
    };
    let long = "x".repeat(1 << 16);
    let delta = |delta: Value| json!({"contentBlockIndex": 0, "delta": delta});
    check(
        "contentBlockDelta",
        delta(json!({"text": long})),
        &expect!["answer: the answer is larger than 8388608 bytes"],
    );
    check(
        "contentBlockDelta",
        delta(json!({"reasoningContent": {"signature": long}})),
        &expect!["answer: a signature is larger than 8388608 bytes"],
    );
    check(
        "contentBlockDelta",
        delta(json!({"reasoningContent": {"redactedContent": long}})),
        &expect!["answer: the answer is larger than 8388608 bytes"],
    );
    check(
        "contentBlockDelta",
        delta(json!({"citation": long})),
        &expect!["answer: the answer is larger than 8388608 bytes"],
    );
    check(
        "contentBlockStart",
        json!({"start": {"toolUse": {"name": "f"}}}),
        &expect!["answer: the answer calls more than 128 tools"],
    );
    let texts: Vec<u8> = (0..2000)
        .flat_map(|index| {
            event("contentBlockDelta", &json!({"contentBlockIndex": index, "delta": {"text": ""}}).to_string())
        })
        .collect();
    check_endless(streamed(), b"", &texts, &expect!["answer: the answer has more than 1024 blocks"]);
}

/// Events with the members that the protocol knows and any values.
fn any_event() -> impl Strategy<Value = Vec<u8>> {
    let name = prop::sample::select(vec![
        "messageStart",
        "contentBlockStart",
        "contentBlockDelta",
        "contentBlockStop",
        "messageStop",
        "metadata",
        "other",
    ]);
    let part = prop::sample::select(vec![
        "{}",
        "null",
        "7",
        "{\"text\":\"a\"}",
        "{\"toolUse\":{\"toolUseId\":\"x\",\"name\":\"f\",\"input\":\"{\"}}",
        "{\"reasoningContent\":{\"text\":\"t\"}}",
        "{\"reasoningContent\":{\"signature\":\"s\"}}",
        "{\"reasoningContent\":{\"redactedContent\":\"r\"}}",
        "{\"inputTokens\":18446744073709551615,\"cacheReadInputTokens\":1}",
    ]);
    (name, 0..3u8, part.clone(), part).prop_map(|(name, index, a, b)| {
        let json = format!(
            "{{\"contentBlockIndex\":{index},\"start\":{a},\"delta\":{b},\"stopReason\":\"end_turn\",\"usage\":{a}}}"
        );
        event(name, &json)
    })
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(cuts: Vec<prop::sample::Index>) {
        let stream = stream(STREAM);
        prop_assert_eq!(decode(streamed(), &stream, &cuts), decode(streamed(), &stream, &[]));
        prop_assert_eq!(decode(whole(), WHOLE.as_bytes(), &cuts), decode(whole(), WHOLE.as_bytes(), &[]));
    }

    #[test]
    fn any_bytes_give_an_answer_or_an_error(bytes: Vec<u8>) {
        check_any(streamed(), &bytes);
        check_any(whole(), &bytes);
        check_any(streamed(), &event("contentBlockDelta", &String::from_utf8_lossy(&bytes)));
    }

    #[test]
    fn any_events_give_an_answer_or_an_error(events in prop::collection::vec(any_event(), 0..10)) {
        check_any(streamed(), &events.concat());
    }
}
