use atlas_model::{Message, OutputSchema, Part, ToolChoice};
use expect_test::{Expect, expect};
use http::HeaderMap;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::testing::compact::{conversation, decode, events_text, request_text, stream};

fn check_request(request: &Request, expected: &Expect) {
    let endpoint =
        Endpoint { base_url: "https://api.test/v1".to_owned(), headers: vec![("x-team".to_owned(), "a".into())] };
    let parts = Responses::openai("sk-test".into()).encode(&endpoint, request).expect("encodes");
    expected.assert_eq(&request_text(&parts));
}

fn asking(stream: bool) -> Request {
    Request { model: "m-1".to_owned(), messages: vec![Message::user("Hi")].into(), stream, ..Request::default() }
}

fn check_whole(value: &Value, expected: &Expect) {
    let decoder = Responses::default().decoder(&asking(false), &HeaderMap::new());
    let (events, error) = decode(decoder, value.to_string().as_bytes(), 1000);
    expected.assert_eq(&events_text(&events, error.as_ref()));
}

fn check_stream(events: &[Value], expected: &Expect) {
    let decoder = || Responses::default().decoder(&asking(true), &HeaderMap::new());
    let text = stream(events);
    let (events, error) = decode(decoder(), text.as_bytes(), 1 << 20);
    assert_eq!(decode(decoder(), text.as_bytes(), 5), (events.clone(), error.clone()), "a split changes nothing");
    expected.assert_eq(&events_text(&events, error.as_ref()));
}

fn output() -> Value {
    json!([
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "I need it."}], "encrypted_content": "gAAA"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": "{\"city\":\"Bern\"}"},
    ])
}

fn response(output: &Value) -> Value {
    json!({
        "id": "resp_1", "object": "response", "status": "completed", "model": "m-1-2026", "output": output, "error": null,
        "instructions": "Be brief.", "service_tier": "default", "incomplete_details": null,
        "usage": {
            "input_tokens": 30, "input_tokens_details": {"cached_tokens": 10},
            "output_tokens": 12, "output_tokens_details": {"reasoning_tokens": 8}, "total_tokens": 42,
        },
    })
}

#[test]
fn a_round_of_tools() {
    let mut request =
        Request { tool_choice: ToolChoice::Required, reasoning_effort: Some("high".to_owned()), ..conversation() };
    let reasoning = |item: Value| Part::Reasoning { text: "hm".to_owned(), opaque: json!({"responses_item": item}) };
    request.messages[1]
        .parts
        .insert(0, reasoning(json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA"})));
    request.messages[1].parts.insert(0, reasoning(json!({"type": "reasoning", "id": "rs_0"})));
    check_request(
        &request,
        &expect![[r#"
            POST https://api.test/v1/responses
            content-type: "application/json"
            authorization: Sensitive
            x-team: Sensitive
            model: "m-1"
            instructions: "Be brief."
            input:
              {"type":"message","role":"user","content":[{"type":"input_text","text":"Weather?"}]}
              {"type":"reasoning","id":"rs_1","encrypted_content":"gAAA"}
              {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Let me see."}]}
              {"type":"function_call","call_id":"a","name":"weather","arguments":"{\"city\":\"Bern\"}"}
              {"type":"function_call","call_id":"b","name":"weather","arguments":"{\"invalid_arguments\":\"{\\\"ci\"}"}
              {"type":"function_call_output","call_id":"a","output":"sunny"}
              {"type":"function_call_output","call_id":"b","output":"{\"error\":\"no JSON\"}"}
            reasoning: {"effort":"high"}
            include:
              "reasoning.encrypted_content"
            tools:
              {"type":"function","name":"weather","description":"The weather of a city.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},"strict":false}
            tool_choice: "required"
            store: false"#]],
    );
}

#[test]
fn all_settings() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let request = Request {
        max_tokens: Some(100),
        temperature: Some(0.5),
        top_p: Some(0.9),
        top_k: Some(40),
        stop: vec!["END".to_owned()],
        output: Some(OutputSchema { name: "answer".to_owned(), schema }),
        idempotency_key: Some("key-1".to_owned()),
        ..asking(true)
    };
    check_request(
        &request,
        &expect![[r#"
            POST https://api.test/v1/responses
            content-type: "application/json"
            authorization: Sensitive
            idempotency-key: "key-1"
            x-team: Sensitive
            model: "m-1"
            input:
              {"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}
            max_output_tokens: 100
            temperature: 0.5
            top_p: 0.9
            text: {"format":{"type":"json_schema","name":"answer","schema":{"type":"object","properties":{"a":{"type":"string"}}},"strict":false}}
            store: false
            stream: true
            dropped: ["top_k", "stop"]"#]],
    );
}

#[test]
fn whole_answers() {
    check_whole(
        &response(&output()),
        &expect![[r#"
            parts:
              {"type":"reasoning","text":"I need it.","opaque":{"responses_item":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"I need it."}],"encrypted_content":"gAAA"}}}
              {"type":"text","text":"Let me see."}
              {"type":"tool_call","id":"call_1","name":"weather","arguments":{"city":"Bern"}}
            stop: "tools"
            usage: {"input":30,"output":12,"cache_read":10,"cache_write":0,"reasoning":8}
            model: "m-1-2026"
            id: "resp_1"
            raw: {"service_tier":"default","output":[{"type":"web_search_call","id":"ws_1","status":"completed"}]}"#]],
    );
}

#[test]
fn answers_that_stopped_early() {
    let message = json!([{"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]}]);
    let mut value = response(&message);
    value["usage"] = Value::Null;
    check_whole(
        &value,
        &expect![[r#"
            parts:
              {"type":"text","text":"I will not."}
            stop: "refused"
            usage: {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
            model: "m-1-2026"
            id: "resp_1"
            raw: {"service_tier":"default"}"#]],
    );
    value["status"] = json!("incomplete");
    value["incomplete_details"] = json!({"reason": "max_output_tokens"});
    let decoder = Responses::default().decoder(&asking(false), &HeaderMap::new());
    let (events, _) = decode(decoder, value.to_string().as_bytes(), 1000);
    assert!(matches!(&events[..], [crate::Event::Answer(answer)] if answer.stop == atlas_model::Stop::Length));
    value["status"] = json!("failed");
    value["error"] = json!({"code": "server_error", "message": "boom"});
    check_whole(&value, &expect!["error provider: boom"]);
    check_whole(
        &response(&json!([])),
        &expect![[r#"
            parts:
            stop: "end"
            usage: {"input":30,"output":12,"cache_read":10,"cache_write":0,"reasoning":8}
            model: "m-1-2026"
            id: "resp_1"
            raw: {"service_tier":"default"}"#]],
    );
    check_whole(
        &json!({"output": []}),
        &expect!["error answer: invalid response: the answer has no text and no tool calls"],
    );
    check_whole(
        &json!({"status": "cancelled"}),
        &expect![[r#"error answer: the response ended with the status "cancelled""#]],
    );
}

#[test]
fn a_stream() {
    let events = [
        json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1", "summary": []}}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "I need it."}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": output()[0]}),
        json!({"type": "response.output_item.added", "output_index": 2, "item": {"type": "message", "content": []}}),
        json!({"type": "response.output_text.delta", "output_index": 2, "content_index": 0, "delta": "Let me "}),
        json!({"type": "response.output_text.delta", "output_index": 2, "content_index": 0, "delta": "see."}),
        json!({"type": "response.output_item.done", "output_index": 2, "item": output()[2]}),
        json!({"type": "response.output_item.added", "output_index": 3, "item": {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": ""}}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 3, "delta": "{\"city\":"}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 3, "delta": "\"Bern\"}"}),
        json!({"type": "response.output_item.done", "output_index": 3, "item": output()[3]}),
        json!({"type": "response.completed", "response": response(&json!([]))}),
    ];
    check_stream(
        &events,
        &expect![[r#"
            reasoning "I need it."
            text "Let me "
            text "see."
            call 0 call_1 weather
            arguments 0 "{\"city\":"
            arguments 0 "\"Bern\"}"
            parts:
              {"type":"reasoning","text":"I need it.","opaque":{"responses_item":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"I need it."}],"encrypted_content":"gAAA"}}}
              {"type":"text","text":"Let me see."}
              {"type":"tool_call","id":"call_1","name":"weather","arguments":{"city":"Bern"}}
            stop: "tools"
            usage: {"input":30,"output":12,"cache_read":10,"cache_write":0,"reasoning":8}
            model: "m-1-2026"
            id: "resp_1"
            raw: {"service_tier":"default"}"#]],
    );
}

#[test]
fn streams_that_break() {
    let text = json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Hel"});
    check_stream(
        std::slice::from_ref(&text),
        &expect![[r#"
        text "Hel"
        error connection: the connection ended before the answer was complete"#]],
    );
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "slow"}}});
    check_stream(
        &[text.clone(), failed],
        &expect![[r#"
        text "Hel"
        error rate_limited: slow"#]],
    );
    check_stream(
        &[text, json!({"type": "error", "code": "server_error", "message": "boom", "param": null})],
        &expect![[r#"
            text "Hel"
            error provider: boom"#]],
    );
    check_stream(
        &[json!({"type": "response.function_call_arguments.delta", "output_index": 9, "delta": "x"})],
        &expect!["error connection: the connection ended before the answer was complete"],
    );
    let added = |at: u64| json!({"type": "response.output_item.added", "output_index": at, "item": {"type": "function_call", "call_id": at.to_string(), "name": "f"}});
    let (events, error) = decode(
        Responses::default().decoder(&asking(true), &HeaderMap::new()),
        stream(&(0..500).map(added).collect::<Vec<_>>()).as_bytes(),
        100,
    );
    assert_eq!(
        (events.len(), error.expect("an error").message.as_str()),
        (128, "the answer calls more than 128 tools")
    );
}

proptest! {
    #[test]
    fn any_bytes_are_read(text in "(data: |\\{\"type\": ?\"response.(completed|output_item.done)\"|,\"response\": ?\\{|\"output\": ?\\[|\\}|\\]|\n\n|[a-z0-9\"é]){0,40}", size in 1_usize..20) {
        let decoder = |stream| Responses::default().decoder(&asking(stream), &HeaderMap::new());
        prop_assert_eq!(decode(decoder(true), text.as_bytes(), size), decode(decoder(true), text.as_bytes(), 1 << 20));
        let _ = decode(decoder(false), text.as_bytes(), size);
    }
}
