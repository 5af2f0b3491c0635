use atlas_model::{Image, Message, OutputSchema, Part, Role, ToolChoice};
use expect_test::{Expect, expect};
use http::HeaderMap;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::testing::compact::{conversation, decode, events_text, request_text};

fn check_request(request: &Request, expected: &Expect) {
    let endpoint = Endpoint { base_url: LOCAL.to_owned(), headers: Vec::new() };
    let parts = Ollama::default().encode(&endpoint, request).expect("encodes");
    expected.assert_eq(&request_text(&parts));
}

fn asking(stream: bool) -> Request {
    Request { model: "qwen3".to_owned(), messages: vec![Message::user("Hi")].into(), stream, ..Request::default() }
}

fn check_answer(lines: &[Value], expected: &Expect) {
    let decoder = || Ollama::default().decoder(&asking(true), &HeaderMap::new());
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let (events, error) = decode(decoder(), text.as_bytes(), 1 << 20);
    assert_eq!(decode(decoder(), text.as_bytes(), 3), (events.clone(), error.clone()), "a split changes nothing");
    expected.assert_eq(&events_text(&events, error.as_ref()));
}

fn line(message: &Value) -> Value {
    json!({"model": "qwen3", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": false})
}

fn last(reason: &str) -> Value {
    json!({
        "model": "qwen3", "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": reason,
        "prompt_eval_count": 12, "eval_count": 5, "total_duration": 99,
    })
}

#[test]
fn a_round_of_tools() {
    check_request(
        &Request { tool_choice: ToolChoice::Required, ..conversation() },
        &expect![[r#"
            POST http://localhost:11434/api/chat
            content-type: "application/json"
            model: "m-1"
            messages:
              {"role":"system","content":"Be brief."}
              {"role":"user","content":"Weather?"}
              {"role":"assistant","content":"Let me see.","tool_calls":[{"id":"a","function":{"name":"weather","arguments":{"city":"Bern"}}},{"id":"b","function":{"name":"weather","arguments":{"invalid_arguments":"{\"ci"}}}]}
              {"role":"tool","content":"sunny","tool_name":"weather","tool_call_id":"a"}
              {"role":"tool","content":"{\"error\":\"no JSON\"}","tool_name":"weather","tool_call_id":"b"}
            stream: false
            tools:
              {"type":"function","function":{"name":"weather","description":"The weather of a city.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}
            dropped: ["tool_choice"]"#]],
    );
}

#[test]
fn all_settings() {
    let image = Part::Image(Image { mime: "image/png".to_owned(), data: "aGk=".to_owned() });
    let parts = vec![Part::Text { text: "What?".to_owned() }, image];
    let request = Request {
        messages: vec![Message { role: Role::User, parts }].into(),
        max_tokens: Some(100),
        temperature: Some(0.5),
        top_p: Some(0.9),
        top_k: Some(40),
        stop: vec!["END".to_owned()],
        output: Some(OutputSchema { name: "answer".to_owned(), schema: json!({"type": "object"}) }),
        reasoning_effort: Some("low".to_owned()),
        extra: json!({"options": {"num_ctx": 8192}, "keep_alive": "5m"}).as_object().expect("an object").clone(),
        tools: vec![crate::testing::weather()],
        tool_choice: ToolChoice::None,
        ..asking(true)
    };
    check_request(
        &request,
        &expect![[r#"
            POST http://localhost:11434/api/chat
            content-type: "application/json"
            model: "qwen3"
            messages:
              {"role":"user","content":"What?","images":["aGk="]}
            stream: true
            format: {"type":"object"}
            think: "low"
            options: {"num_predict":100,"temperature":0.5,"top_p":0.9,"top_k":40,"stop":["END"],"num_ctx":8192}
            keep_alive: "5m""#]],
    );
}

#[test]
fn a_stream() {
    let calls = json!([
        {"function": {"name": "weather", "arguments": {"city": "Bern"}}},
        {"id": "x", "function": {"name": "time", "arguments": null}},
    ]);
    let lines = [
        line(&json!({"role": "assistant", "content": "", "thinking": "hm"})),
        line(&json!({"role": "assistant", "content": "Let me "})),
        line(&json!({"role": "assistant", "content": "see."})),
        line(&json!({"role": "assistant", "content": "", "tool_calls": calls})),
        last("stop"),
    ];
    check_answer(
        &lines,
        &expect![[r#"
            reasoning "hm"
            text "Let me "
            text "see."
            call 0 call_1_0 weather
            arguments 0 "{\"city\":\"Bern\"}"
            call 1 x time
            arguments 1 "null"
            parts:
              {"type":"reasoning","text":"hm"}
              {"type":"text","text":"Let me see."}
              {"type":"tool_call","id":"call_1_0","name":"weather","arguments":{"city":"Bern"}}
              {"type":"tool_call","id":"x","name":"time","arguments":{}}
            stop: "tools"
            usage: {"input":12,"output":5,"cache_read":0,"cache_write":0,"reasoning":0}
            model: "qwen3"
            id: null
            raw: {"total_duration":99}"#]],
    );
}

#[test]
fn whole_answers() {
    let value = json!({"model": "qwen3", "message": {"role": "assistant", "content": "Hello"}, "done": true, "done_reason": "length", "eval_count": 1});
    let (events, error) =
        decode(Ollama::default().decoder(&asking(false), &HeaderMap::new()), value.to_string().as_bytes(), 9);
    expect![[r#"
        parts:
          {"type":"text","text":"Hello"}
        stop: "length"
        usage: {"input":0,"output":1,"cache_read":0,"cache_write":0,"reasoning":0}
        model: "qwen3"
        id: null"#]]
    .assert_eq(&events_text(&events, error.as_ref()));
}

#[test]
fn streams_that_break() {
    let text = line(&json!({"content": "Hel"}));
    check_answer(
        std::slice::from_ref(&text),
        &expect![[r#"
        text "Hel"
        error connection: the connection ended before the answer was complete"#]],
    );
    check_answer(
        &[text, json!({"error": "model runner has stopped"})],
        &expect![[r#"
        text "Hel"
        error provider: model runner has stopped"#]],
    );
    check_answer(
        &[last("stop")],
        &expect![[r#"
        parts:
        stop: "end"
        usage: {"input":12,"output":5,"cache_read":0,"cache_write":0,"reasoning":0}
        model: "qwen3"
        id: null
        raw: {"total_duration":99}"#]],
    );
    check_answer(
        &[json!({"done": true})],
        &expect!["error answer: invalid response: the answer has no text and no tool calls"],
    );
    check_answer(
        &[json!("x"), json!(7), last("load")],
        &expect![[
            r#"error answer: the answer is a text and not a stream: "x" 7 {"model":"qwen3","message":{"role":"assistant","content":""},"done":true,"done_reason":"load","prompt_eval_count":12,"eval_count":5,"total_duration":99}"#
        ]],
    );
    let (_, error) = decode(Ollama::default().decoder(&asking(true), &HeaderMap::new()), b"{\"message\n", 4);
    assert_eq!(error.map(|error| error.kind.name()), Some("connection"));
}

proptest! {
    #[test]
    fn any_bytes_are_read(text in "(\\{\"message\": ?\\{|\"content\": ?\"|\"tool_calls\": ?\\[|\"done\": ?true|\\}|\\]|,|\n|[a-z0-9\"é]){0,40}", size in 1_usize..20) {
        let decoder = |stream| Ollama::default().decoder(&asking(stream), &HeaderMap::new());
        prop_assert_eq!(decode(decoder(true), text.as_bytes(), size), decode(decoder(true), text.as_bytes(), 1 << 20));
        let _ = decode(decoder(false), text.as_bytes(), size);
    }
}
