//! Answers, sound and broken.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::testing::{ask, check_answer, check_any, check_endless, decode, typed};

const STREAM: &str = include_str!("stream.txt");
const WHOLE: &str = include_str!("whole.json");

fn streamed() -> Box<dyn Decoder> {
    protocol().decoder(&Request { stream: true, ..ask("hi") }, &typed("text/event-stream"))
}

fn whole() -> Box<dyn Decoder> {
    protocol().decoder(&ask("hi"), &typed("application/json"))
}

fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}

#[test]
fn a_stream_is_read() {
    check_answer(
        streamed(),
        STREAM.as_bytes(),
        &expect![[r#"
        reasoning "They ask about "
        reasoning "the weather."
        text "Zürich "
        text "or Bern?"
        reasoning "I look "
        reasoning "it up."
        call 0 weather_1 weather
        arguments 0 {"city":
        arguments 0  "Bern"}
        call 1 clock_1 clock
        answer Some("c14c80c3") of m-1: Tools
          {"type":"reasoning","text":"They ask about the weather.","opaque":{"cohere":"thinking"}}
          {"type":"text","text":"Zürich or Bern?"}
          {"type":"reasoning","text":"I look it up.","opaque":{"cohere":"tool_plan"}}
          {"type":"tool_call","id":"weather_1","name":"weather","arguments":{"city":"Bern"}}
          {"type":"tool_call","id":"clock_1","name":"clock","arguments":{}}
          {"input":500,"output":40,"cache_read":128,"cache_write":0,"reasoning":0}
          raw {"citations":[{"start":0,"end":6,"text":"Zürich"}],"usage":{"billed_units":{"input_tokens":10,"output_tokens":30}}}
    "#]],
    );
}

#[test]
fn a_whole_answer_is_read() {
    check_answer(
        whole(),
        WHOLE.as_bytes(),
        &expect![[r#"
        answer Some("5a50480a") of m-1: Tools
          {"type":"reasoning","text":"First I look.","opaque":{"cohere":"tool_plan"}}
          {"type":"reasoning","text":"Hm.","opaque":{"cohere":"thinking"}}
          {"type":"text","text":"Done."}
          {"type":"tool_call","id":"weather_1","name":"weather","arguments":{"city":"Bern"}}
          {"input":5,"output":418,"cache_read":0,"cache_write":0,"reasoning":0}
          raw {"content":[{"type":"odd","x":1}],"citations":[{"start":0,"end":4,"text":"Done"}],"usage":{"billed_units":{"input_tokens":5,"output_tokens":418.0}}}
    "#]],
    );
}

#[test]
fn reasons_to_stop() {
    let check = |reason: &str, expected: &Expect| {
        let message = json!({"content": [{"type": "text", "text": "x"}]});
        let answer = json!({"message": message, "finish_reason": reason, "usage": {"tokens": {"input_tokens": 3.0}}});
        check_answer(whole(), answer.to_string().as_bytes(), expected);
    };
    check(
        "MAX_TOKENS",
        &expect![[r#"
        answer None of m-1: Length
          {"type":"text","text":"x"}
          {"input":3,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
    "#]],
    );
    check(
        "STOP_SEQUENCE",
        &expect![[r#"
        answer None of m-1: Text
          {"type":"text","text":"x"}
          {"input":3,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
    "#]],
    );
    check(
        "USER_CANCEL",
        &expect![[r#"
        answer None of m-1: Other("USER_CANCEL")
          {"type":"text","text":"x"}
          {"input":3,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
    "#]],
    );
    check(
        "ERROR",
        &expect![[r#"
        provider: the provider could not finish the answer
    "#]],
    );
    check(
        "TIMEOUT",
        &expect![[r#"
        timeout: the provider could not finish the answer
    "#]],
    );
}

#[test]
fn errors_have_their_kind() {
    let check = |text: &str, expected: &Expect| check_answer(streamed(), text.as_bytes(), expected);
    let end = json!({"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "the model broke"}});
    check(
        &event(&end),
        &expect![[r#"
        provider: the model broke
    "#]],
    );
    check(
        &event(&json!({"type": "error", "error": {"type": "rate_limit", "message": "slow down"}})),
        &expect![[r#"
        rate_limited: slow down
    "#]],
    );
    check(
        "data: [DONE]\n\n",
        &expect![[r#"
        connection: the connection ended before the answer was complete
    "#]],
    );
    check(
        "data: {\n\n",
        &expect![[r#"
            answer: a piece of the stream is not JSON: EOF while parsing an object at line 1 column 1: {
        "#]],
    );
    check(
        &event(&json!({"type": "tool-call-delta", "index": 1})),
        &expect![[r#"
        answer: a piece of call 1, which has not begun
    "#]],
    );
    check(
        &event(&json!({"type": "tool-call-start", "index": 1})),
        &expect![[r#"
            connection: the connection ended before the answer was complete
        "#]],
    );
    check(
        &event(&json!({"type": "message-end", "delta": {"finish_reason": "COMPLETE"}})),
        &expect![[r#"
            answer None of m-1: End
              {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
        "#]],
    );
    check(
        &event(&json!({"type": "message-end", "delta": {}})),
        &expect![[r#"
        answer: invalid response: the answer has no text and no tool calls
    "#]],
    );
    check_answer(
        whole(),
        b"{}",
        &expect![[r#"
        answer: the answer has no message
    "#]],
    );
    let failure = |status: u16, body: &[u8]| {
        let failure = protocol().failure(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), body);
        format!("{} {}", failure.kind.name(), failure.message)
    };
    expect!["credentials invalid api token"]
        .assert_eq(&failure(401, b"{\"message\": \"invalid api token\", \"id\": \"1\"}"));
    expect!["unknown_model model 'x' not found"].assert_eq(&failure(404, b"{\"message\": \"model 'x' not found\"}"));
    expect!["too_long too many tokens: size limit exceeded by 1 tokens."]
        .assert_eq(&failure(400, b"{\"message\": \"too many tokens: size limit exceeded by 1 tokens.\"}"));
}

#[test]
fn endless_answers_are_refused() {
    let long = "x".repeat(1 << 16);
    let check = |kind: &str, message: Value, expected: &Expect| {
        let start =
            json!({"type": "tool-call-start", "delta": {"message": {"tool_calls": {"function": {"name": "f"}}}}});
        let piece = json!({"type": kind, "delta": {"message": message}});
        check_endless(streamed(), event(&start).as_bytes(), event(&piece).as_bytes(), expected);
    };
    check(
        "content-delta",
        json!({"content": {"text": long}}),
        &expect!["answer: the answer is larger than 8388608 bytes"],
    );
    check(
        "content-start",
        json!({"content": {"type": "text", "text": "x"}}),
        &expect!["answer: the answer has more than 1024 parts"],
    );
    check(
        "content-start",
        json!({"content": {"type": "odd", "text": long}}),
        &expect!["answer: the answer is larger than 8388608 bytes"],
    );
    check("tool-plan-delta", json!({"tool_plan": long}), &expect!["answer: the answer is larger than 8388608 bytes"]);
    check(
        "tool-call-delta",
        json!({"tool_calls": {"function": {"arguments": long}}}),
        &expect!["answer: the answer is larger than 8388608 bytes"],
    );
    check(
        "tool-call-start",
        json!({"tool_calls": {"function": {"name": "f"}}}),
        &expect!["answer: the answer calls more than 128 tools"],
    );
    check("citation-start", json!({"citations": long}), &expect!["answer: the answer is larger than 8388608 bytes"]);
}

/// Events with the members that the protocol knows and any values.
fn any_event() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(vec![
        "message-start",
        "content-start",
        "content-delta",
        "content-end",
        "tool-plan-delta",
        "tool-call-start",
        "tool-call-delta",
        "tool-call-end",
        "citation-start",
        "message-end",
    ]);
    let part = prop::sample::select(vec![
        "{}",
        "null",
        "7",
        "{\"type\":\"text\",\"text\":\"a\"}",
        "{\"type\":\"thinking\",\"thinking\":\"t\"}",
        "{\"id\":\"x\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}",
        "{\"tokens\":{\"input_tokens\":-1.5,\"output_tokens\":1e300},\"cached_tokens\":7}",
    ]);
    (kind, 0..3u8, part.clone(), part).prop_map(|(kind, index, a, b)| {
        format!(
            "data: {{\"type\":\"{kind}\",\"index\":{index},\"delta\":{{\"message\":{{\"content\":{a},\"tool_calls\":{b},\"tool_plan\":\"p\"}},\"finish_reason\":\"COMPLETE\",\"usage\":{a}}}}}\n\n"
        )
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
    fn any_events_give_an_answer_or_an_error(events in prop::collection::vec(any_event(), 0..10)) {
        check_any(streamed(), events.concat().as_bytes());
    }
}
