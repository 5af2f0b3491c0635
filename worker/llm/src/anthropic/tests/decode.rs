//! Answers, sound and broken.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::testing::{ask, check_answer, check_any, check_endless, decode, typed};

const STREAM: &str = include_str!("stream.txt");
const WHOLE: &str = include_str!("whole.json");

fn streamed() -> Box<dyn Decoder> {
    let request = Request { stream: true, ..ask("hi") };
    protocol().decoder(&request, &typed("text/event-stream; charset=utf-8"))
}

fn whole() -> Box<dyn Decoder> {
    protocol().decoder(&ask("hi"), &typed("application/json"))
}

#[test]
fn a_stream_is_read() {
    check_answer(
        streamed(),
        STREAM.as_bytes(),
        &expect![[r#"
        reasoning "Berne is "
        reasoning "a city."
        text "Zürich "
        text "or Bern?"
        call 0 toolu_01 weather
        arguments 0 {"city":
        arguments 0  "Bern"}
        call 1 toolu_02 clock
        answer Some("msg_01") of claude-sonnet-4-20250514: Tools
          {"type":"reasoning","text":"Berne is a city.","opaque":{"type":"thinking","signature":"RXFRQg=="}}
          {"type":"reasoning","text":"","opaque":{"type":"redacted_thinking","data":"cmVk"}}
          {"type":"text","text":"Zürich or Bern?"}
          {"type":"tool_call","id":"toolu_01","name":"weather","arguments":{"city":"Bern"}}
          {"type":"tool_call","id":"toolu_02","name":"clock","arguments":{}}
          {"input":442,"output":89,"cache_read":400,"cache_write":30,"reasoning":20}
          raw {"content":[{"index":2,"delta":{"type":"citations_delta","citation":{"type":"char_location"}}}],"usage":{"output_tokens_details":{"thinking_tokens":20},"cache_creation":{"ephemeral_5m_input_tokens":30},"service_tier":"standard"}}
    "#]],
    );
}

#[test]
fn a_whole_answer_is_read() {
    check_answer(
        whole(),
        WHOLE.as_bytes(),
        &expect![[r#"
        answer Some("msg_02") of claude-haiku-4-5-20251001: Tools
          {"type":"reasoning","text":"Hm.","opaque":{"type":"thinking","signature":"c2ln"}}
          {"type":"text","text":"A search: "}
          {"type":"text","text":"done."}
          {"type":"tool_call","id":"toolu_1","name":"weather","arguments":{"city":"Bern"}}
          {"input":11,"output":7,"cache_read":0,"cache_write":0,"reasoning":0}
          raw {"content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"},"index":2},{"citations":[{"url":"https://example.com"}],"index":3}],"container":{"id":"c"}}
    "#]],
    );
}

#[test]
fn reasons_to_stop() {
    let check = |reason: &str, expected: &Expect| {
        let message = json!({"content": [], "stop_reason": reason, "model": "m", "usage": {"input_tokens": 1}});
        check_answer(whole(), message.to_string().as_bytes(), expected);
    };
    check(
        "model_context_window_exceeded",
        &expect![[r#"
        answer None of m: Length
          {"input":1,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
    "#]],
    );
    check(
        "stop_sequence",
        &expect![[r#"
        answer None of m: Text
          {"input":1,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
    "#]],
    );
    check(
        "refusal",
        &expect![[r#"
        answer None of m: Refused
          {"input":1,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
    "#]],
    );
    check(
        "pause_turn",
        &expect![[r#"
        answer None of m: Other("pause_turn")
          {"input":1,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
    "#]],
    );
}

#[test]
fn errors_have_their_kind() {
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    check_answer(
        streamed(),
        overloaded.as_bytes(),
        &expect![[r#"
        provider: Overloaded
    "#]],
    );
    check_answer(
        streamed(),
        b"event: ping\ndata: {\"type\": \"ping\"}\n\n",
        &expect![[r#"
        connection: the connection ended before the answer was complete
    "#]],
    );
    check_answer(
        streamed(),
        b"data: {\n\n",
        &expect![[r#"
            answer: a piece of the stream is not JSON: EOF while parsing an object at line 1 column 1: {
        "#]],
    );
    check_answer(
        streamed(),
        b"data: {\"type\": \"message_stop\"}\n\n",
        &expect![[r#"
        answer: the answer ended before it began
    "#]],
    );
    check_answer(
        whole(),
        b"{\"type\": \"message\"}",
        &expect![[r#"
        answer: the answer is no message with content
    "#]],
    );
    let failure = protocol().failure(
        StatusCode::UNAUTHORIZED,
        &HeaderMap::new(),
        b"{\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\"invalid x-api-key sk-ant-api03-abcdef\"}}",
    );
    expect!["credentials invalid x-api-key [redacted]"].assert_eq(&format!(
        "{} {}",
        failure.kind.name(),
        failure.message
    ));
}

#[test]
fn an_empty_answer_needs_a_reason() {
    let empty = json!({"type": "message", "content": []});
    let refused = expect![[r#"
        answer: invalid response: the answer has no text and no tool calls
    "#]];
    check_answer(whole(), empty.to_string().as_bytes(), &refused);
    for reason in ["end_turn", "max_tokens"] {
        let ended = json!({"type": "message", "content": [], "stop_reason": reason});
        let (events, error) = decode(whole(), ended.to_string().as_bytes(), &[]);
        assert_eq!((events.len(), error), (1, None), "{reason}");
    }
}

#[test]
fn events_out_of_order_are_refused() {
    let start = "data: {\"type\":\"message_start\",\"message\":{\"content\":[]}}\n\n";
    let check = |events: &[serde_json::Value], expected: &Expect| {
        let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        check_answer(streamed(), format!("{start}{events}").as_bytes(), expected);
    };
    let begin = |block| json!({"type": "content_block_start", "index": 0, "content_block": block});
    let more = |delta| json!({"type": "content_block_delta", "index": 0, "delta": delta});
    check(
        &[more(json!({"type": "text_delta", "text": "x"}))],
        &expect![[r#"
        answer: a piece of block 0, which has not begun
    "#]],
    );
    check(
        &[begin(json!({"type": "text"})), more(json!({"type": "input_json_delta", "partial_json": "1"}))],
        &expect![[r#"
            answer: a piece of block 0 that is of another type or has ended
        "#]],
    );
    let stop = json!({"type": "content_block_stop", "index": 0});
    check(
        &[begin(json!({"type": "text"})), stop, more(json!({"type": "text_delta", "text": "x"}))],
        &expect![[r#"
        answer: a piece of block 0 that is of another type or has ended
    "#]],
    );
    check(
        &[begin(json!({"type": "tool_use", "id": "a"}))],
        &expect![[r#"
        connection: the connection ended before the answer was complete
    "#]],
    );
}

#[test]
fn endless_answers_are_refused() {
    let start = b"data: {\"type\":\"message_start\",\"message\":{\"content\":[{\"type\": \"thinking\"}]}}\n\n";
    let call = json!({"type": "content_block_start", "content_block": {"type": "tool_use", "name": "f"}});
    let delta = |delta: serde_json::Value| {
        format!("data: {}\n\n", json!({"type": "content_block_delta", "index": 0, "delta": delta}))
    };
    let long = "x".repeat(1 << 16);
    let check = |piece: &str, expected: &Expect| check_endless(streamed(), start, piece.as_bytes(), expected);
    check(&format!("data: {call}\n\n"), &expect!["answer: the answer calls more than 128 tools"]);
    check(
        &delta(json!({"type": "thinking_delta", "thinking": long})),
        &expect!["answer: the answer is larger than 8388608 bytes"],
    );
    check(
        &delta(json!({"type": "signature_delta", "signature": long})),
        &expect!["answer: a signature is larger than 8388608 bytes"],
    );
    check(
        &delta(json!({"type": "odd_delta", "odd": long})),
        &expect!["answer: the answer is larger than 8388608 bytes"],
    );
    let usage = json!({"type": "message_delta", "usage": {"odd": long.as_str()}});
    check(&format!("data: {usage}\n\n"), &expect!["answer: the answer is larger than 8388608 bytes"]);
    check(&long, &expect!["answer: an event of the stream is larger than 8388608 bytes"]);
    let numbered: String = (0..2000)
        .map(|index| {
            let event = json!({"type": "content_block_start", "index": index, "content_block": {"type": "text"}});
            format!("data: {event}\n\n")
        })
        .collect();
    check(&numbered, &expect!["answer: the answer has more than 1024 blocks"]);
}

/// Events with the members that the protocol knows, in any order and with any values.
fn event() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(vec![
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
        "ping",
    ]);
    let part = prop::sample::select(vec![
        "{}",
        "null",
        "[]",
        "{\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"usage\":{\"input_tokens\":18446744073709551615,\"cache_read_input_tokens\":7}}",
        "{\"type\":\"text\",\"text\":\"b\"}",
        "{\"type\":\"tool_use\",\"id\":\"x\",\"name\":\"f\",\"input\":{}}",
        "{\"type\":\"thinking\",\"thinking\":\"t\",\"signature\":\"s\"}",
        "{\"type\":\"redacted_thinking\",\"data\":\"d\"}",
        "{\"type\":\"text_delta\",\"text\":\"c\"}",
        "{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}",
        "{\"type\":\"signature_delta\",\"signature\":\"s\"}",
        "{\"stop_reason\":\"end_turn\",\"stop_sequence\":null}",
    ]);
    (kind, 0..3u8, part.clone(), part).prop_map(|(kind, index, a, b)| {
        format!("data: {{\"type\":\"{kind}\",\"index\":{index},\"message\":{a},\"content_block\":{b},\"delta\":{b},\"usage\":{a}}}\n\n")
    })
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(cuts: Vec<prop::sample::Index>) {
        prop_assert_eq!(decode(streamed(), STREAM.as_bytes(), &cuts), decode(streamed(), STREAM.as_bytes(), &[]));
        prop_assert_eq!(decode(whole(), WHOLE.as_bytes(), &cuts), decode(whole(), WHOLE.as_bytes(), &[]));
    }

    #[test]
    fn any_bytes_give_an_answer_or_an_error(bytes: Vec<u8>) {
        check_any(streamed(), &bytes);
        check_any(whole(), &bytes);
    }

    #[test]
    fn any_events_give_an_answer_or_an_error(events in prop::collection::vec(event(), 0..12)) {
        check_any(streamed(), events.concat().as_bytes());
    }
}
