mod calls;
mod models;

use atlas_model::{Image, Message, OutputSchema, Part, Role, ToolChoice};
use expect_test::{Expect, expect};
use http::HeaderMap;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::testing::compact::{conversation, decode, events_text, request_text, stream};
use crate::testing::weather;

fn encode(chat: &Chat, request: &Request) -> Parts {
    let endpoint = Endpoint { base_url: "https://api.test/v1/".to_owned(), headers: Vec::new() };
    chat.encode(&endpoint, request).expect("encodes")
}

fn check_request(chat: &Chat, request: &Request, expected: &Expect) {
    expected.assert_eq(&request_text(&encode(chat, request)));
}

fn body(request: &Request) -> Value {
    serde_json::from_slice(&encode(&Chat::openai("sk-test".into()), request).body).expect("JSON")
}

fn asking(stream: bool) -> Request {
    Request { model: "m-1".to_owned(), messages: vec![Message::user("Hi")].into(), stream, ..Request::default() }
}

fn check_whole(value: &Value, expected: &Expect) {
    let decoder = Chat::default().decoder(&asking(false), &HeaderMap::new());
    let (events, error) = decode(decoder, value.to_string().as_bytes(), 1000);
    expected.assert_eq(&events_text(&events, error.as_ref()));
}

fn check_stream(text: &str, expected: &Expect) {
    let decoder = || Chat::default().decoder(&asking(true), &HeaderMap::new());
    let (events, error) = decode(decoder(), text.as_bytes(), 1 << 20);
    assert_eq!(decode(decoder(), text.as_bytes(), 7), (events.clone(), error.clone()), "a split changes nothing");
    expected.assert_eq(&events_text(&events, error.as_ref()));
}

fn delta(delta: &Value) -> Value {
    json!({"id": "c-1", "object": "chat.completion.chunk", "model": "m-1-2026", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"id": "c-1", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

#[test]
fn a_plain_question() {
    check_request(
        &Chat::openai("sk-test".into()),
        &asking(false),
        &expect![[r#"
            POST https://api.test/v1/chat/completions
            content-type: "application/json"
            authorization: Sensitive
            model: "m-1"
            messages:
              {"role":"user","content":"Hi"}"#]],
    );
}

#[test]
fn a_round_of_tools() {
    let request = Request { tool_choice: ToolChoice::Tool("weather".to_owned()), ..conversation() };
    check_request(
        &Chat::compatible("local", None),
        &request,
        &expect![[r#"
            POST https://api.test/v1/chat/completions
            content-type: "application/json"
            model: "m-1"
            messages:
              {"role":"system","content":"Be brief."}
              {"role":"user","content":"Weather?"}
              {"role":"assistant","content":"Let me see.","tool_calls":[{"id":"a","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Bern\"}"}},{"id":"b","type":"function","function":{"name":"weather","arguments":"{\"invalid_arguments\":\"{\\\"ci\"}"}}]}
              {"role":"tool","tool_call_id":"a","content":"sunny"}
              {"role":"tool","tool_call_id":"b","content":"{\"error\":\"no JSON\"}"}
            tools:
              {"type":"function","function":{"name":"weather","description":"The weather of a city.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}
            tool_choice: {"type":"function","function":{"name":"weather"}}"#]],
    );
}

#[test]
fn all_settings() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
    let request = Request {
        max_tokens: Some(100),
        temperature: Some(0.5),
        top_p: Some(0.9),
        top_k: Some(40),
        stop: vec!["END".to_owned()],
        output: Some(OutputSchema { name: "answer".to_owned(), schema }),
        reasoning_effort: Some("low".to_owned()),
        idempotency_key: Some("key-1".to_owned()),
        extra: json!({"seed": 7, "stream_options": {"more": true}}).as_object().expect("an object").clone(),
        ..asking(true)
    };
    check_request(
        &Chat::openai("sk-test".into()),
        &request,
        &expect![[r#"
            POST https://api.test/v1/chat/completions
            content-type: "application/json"
            authorization: Sensitive
            idempotency-key: "key-1"
            model: "m-1"
            messages:
              {"role":"user","content":"Hi"}
            max_tokens: 100
            temperature: 0.5
            top_p: 0.9
            stop:
              "END"
            reasoning_effort: "low"
            response_format: {"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false},"strict":true}}
            stream: true
            stream_options: {"include_usage":true,"more":true}
            seed: 7
            dropped: ["top_k"]"#]],
    );
}

#[test]
fn azure_names_the_deployment_in_the_path() {
    let parts = encode(&Chat::azure("secret".into(), None), &Request { model: "my gpt".to_owned(), ..asking(false) });
    let path = "https://api.test/v1/openai/deployments/my%20gpt/chat/completions?api-version=2024-12-01-preview";
    assert_eq!(parts.url, path);
    assert_eq!(parts.headers["api-key"], "secret");
    assert!(!format!("{parts:?}").contains("secret"));
}

#[test]
fn images_are_inline() {
    let image = |mime: &str| Part::Image(Image { mime: mime.to_owned(), data: "aGk=".to_owned() });
    let message =
        |mime| Message { role: Role::User, parts: vec![Part::Text { text: "What?".to_owned() }, image(mime)] };
    let request = |mime| Request { messages: vec![message(mime)].into(), ..asking(false) };
    assert_eq!(
        body(&request("image/png"))["messages"][0]["content"],
        json!([{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}])
    );
    assert!(Chat::default().encode(&Endpoint::default(), &request("text/html")).is_err());
}

#[test]
fn reasoning_goes_back_in_its_member_while_the_turn_goes_on() {
    let mut request = conversation();
    let reasoning = |opaque: Value| Part::Reasoning { text: "hm".to_owned(), opaque };
    request.messages[1].parts.insert(0, reasoning(json!({"field": "reasoning_content", "reasoning_details": [1]})));
    let message = |request: &Request| body(request)["messages"][2].clone();
    assert_eq!(message(&request)["reasoning_content"], "hm");
    assert_eq!(message(&request)["reasoning_details"], json!([1]));
    request.messages.push(Message::user("And tomorrow?"));
    assert_eq!(message(&request).get("reasoning_content"), None);
    request.messages.pop();
    request.messages[1].parts[0] = reasoning(json!({"signature": "of another provider"}));
    assert_eq!(message(&request).get("reasoning_content"), None);
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let mut request = conversation();
    request.messages[1].role = Role::User;
    assert!(Chat::default().encode(&Endpoint::default(), &request).is_err());
    let access = Access::Bearer { key: "line\nbreak".into(), organization: None };
    let error = Chat { access, ..Chat::default() }.encode(&Endpoint::default(), &asking(false));
    assert_eq!(
        error.map_err(|error| error.to_string()),
        Err("the header \"authorization\" has characters that HTTP does not allow".to_owned())
    );
}

#[test]
fn whole_answers() {
    check_whole(
        &json!({
            "id": "c-1", "object": "chat.completion", "created": 1, "model": "m-1-2026", "system_fingerprint": "fp",
            "choices": [{"index": 0, "logprobs": null, "finish_reason": "tool_calls", "message": {
                "role": "assistant", "content": "Let me see.", "annotations": [{"type": "x"}],
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Bern\"}"}},
                    {"id": "b", "type": "function", "function": {"name": "time", "arguments": ""}},
                ],
            }}],
            "usage": {"prompt_tokens": 20, "completion_tokens": 9, "total_tokens": 29, "prompt_tokens_details": {"cached_tokens": 16}},
        }),
        &expect![[r#"
            parts:
              {"type":"text","text":"Let me see."}
              {"type":"tool_call","id":"a","name":"weather","arguments":{"city":"Bern"}}
              {"type":"tool_call","id":"b","name":"time","arguments":{}}
            stop: "tools"
            usage: {"input":20,"output":9,"cache_read":16,"cache_write":0,"reasoning":0}
            model: "m-1-2026"
            id: "c-1"
            raw: {"system_fingerprint":"fp","annotations":[{"type":"x"}]}"#]],
    );
}

#[test]
fn whole_answers_of_other_servers() {
    let answer = |message: Value, reason: &str| json!({"choices": [{"message": message, "finish_reason": reason}]});
    check_whole(
        &answer(json!({"content": null, "refusal": "I will not."}), "stop"),
        &expect![[r#"
            parts:
              {"type":"text","text":"I will not."}
            stop: "refused"
            usage: {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
            model: "m-1"
            id: null"#]],
    );
    check_whole(
        &answer(
            json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Yes"}]}),
            "eos",
        ),
        &expect![[r#"
            parts:
              {"type":"reasoning","text":"hm"}
              {"type":"text","text":"Yes"}
            stop: "end"
            usage: {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
            model: "m-1"
            id: null"#]],
    );
    check_whole(
        &answer(
            json!({"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}, {"function": {"name": "g"}}]}),
            "stop",
        ),
        &expect![[r#"
            parts:
              {"type":"tool_call","id":"call_1_0","name":"f","arguments":{"a":1}}
              {"type":"tool_call","id":"call_1_1","name":"g","arguments":{}}
            stop: "tools"
            usage: {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
            model: "m-1"
            id: null"#]],
    );
    check_whole(
        &answer(json!({"content": ""}), "stop"),
        &expect![[r#"
            parts:
            stop: "end"
            usage: {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
            model: "m-1"
            id: null"#]],
    );
    check_whole(
        &answer(json!({"content": ""}), "length"),
        &expect![[r#"
            parts:
            stop: "length"
            usage: {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
            model: "m-1"
            id: null"#]],
    );
    check_whole(
        &json!({"choices": [{"index": 0, "message": {"content": ""}}]}),
        &expect!["error answer: invalid response: the answer has no text and no tool calls"],
    );
    check_whole(&json!({"choices": []}), &expect!["error answer: the answer has no choices"]);
    check_whole(&json!([]), &expect!["error answer: the answer has no choices"]);
}

#[test]
fn a_stream_of_text() {
    let usage = json!({"id": "c-1", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}});
    let chunks = [
        delta(&json!({"role": "assistant", "content": ""})),
        delta(&json!({"content": "Hel"})),
        delta(&json!({"content": "lo"})),
        finish("stop"),
        usage,
    ];
    check_stream(
        &(stream(&chunks) + "data: [DONE]\n\n"),
        &expect![[r#"
            text "Hel"
            text "lo"
            parts:
              {"type":"text","text":"Hello"}
            stop: "end"
            usage: {"input":5,"output":2,"cache_read":0,"cache_write":0,"reasoning":0}
            model: "m-1-2026"
            id: "c-1""#]],
    );
}

#[test]
fn a_stream_of_calls() {
    let call = |call: Value| delta(&json!({"tool_calls": [call]}));
    let chunks = [
        delta(&json!({"reasoning_content": "I need "})),
        delta(&json!({"reasoning_content": "both."})),
        call(json!({"index": 0, "id": "a", "type": "function", "function": {"name": "weather", "arguments": ""}})),
        call(json!({"index": 1, "id": "b", "type": "function", "function": {"name": "time", "arguments": "{\"zo"}})),
        call(json!({"index": 0, "function": {"arguments": "{\"city\":"}})),
        call(json!({"index": 1, "function": {"arguments": "ne\""}})),
        call(json!({"index": 0, "function": {"arguments": "\"Bern\"}"}})),
        finish("tool_calls"),
    ];
    check_stream(
        &stream(&chunks),
        &expect![[r#"
            reasoning "I need "
            reasoning "both."
            call 0 a weather
            call 1 b time
            arguments 1 "{\"zo"
            arguments 0 "{\"city\":"
            arguments 1 "ne\""
            arguments 0 "\"Bern\"}"
            parts:
              {"type":"reasoning","text":"I need both.","opaque":{"field":"reasoning_content"}}
              {"type":"tool_call","id":"a","name":"weather","arguments":{"city":"Bern"}}
              {"type":"tool_call","id":"b","name":"time","arguments":"{\"zone\""}
            stop: "tools"
            usage: {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
            model: "m-1-2026"
            id: "c-1""#]],
    );
}

#[test]
fn calls_of_servers_that_number_them_otherwise() {
    let calls = |calls: Value| delta(&json!({"tool_calls": calls}));
    let same = [
        calls(json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}])),
        calls(json!([{"index": 0, "id": "b", "function": {"name": "f", "arguments": "{\"x\":"}}])),
        calls(json!([{"index": 0, "function": {"arguments": "1}"}}])),
        finish("stop"),
    ];
    let none = [
        calls(
            json!([{"id": "a", "function": {"name": "f", "arguments": "{}"}}, {"id": "b", "function": {"name": "f", "arguments": "{\"x\":"}}]),
        ),
        calls(json!([{"function": {"arguments": "1}"}}])),
        finish("stop"),
    ];
    let decoded = |chunks: &[Value]| {
        let decoder = Chat::default().decoder(&asking(true), &HeaderMap::new());
        decode(decoder, stream(chunks).as_bytes(), 100)
    };
    let (events, error) = decoded(&same);
    assert_eq!(decoded(&none), (events.clone(), error.clone()));
    expect![[r#"
        call 0 a f
        arguments 0 "{}"
        call 1 b f
        arguments 1 "{\"x\":"
        arguments 1 "1}"
        parts:
          {"type":"tool_call","id":"a","name":"f","arguments":{}}
          {"type":"tool_call","id":"b","name":"f","arguments":{"x":1}}
        stop: "tools"
        usage: {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
        model: "m-1-2026"
        id: "c-1""#]]
    .assert_eq(&events_text(&events, error.as_ref()));
}

#[test]
fn streams_that_break() {
    let text = delta(&json!({"content": "Hel"}));
    check_stream(
        &stream(std::slice::from_ref(&text)),
        &expect![[r#"
        text "Hel"
        error connection: the connection ended before the answer was complete"#]],
    );
    check_stream(
        &(stream(std::slice::from_ref(&text)) + "data: [DONE]\n\n"),
        &expect![[r#"
        text "Hel"
        error connection: the connection ended before the answer was complete"#]],
    );
    check_stream(
        &(stream(std::slice::from_ref(&text)) + "data: {\"broken\n\n"),
        &expect![[r#"
            text "Hel"
            error answer: a piece of the stream is not JSON: EOF while parsing a string at line 1 column 8: {"broken"#]],
    );
    check_stream(
        &stream(&[text, json!({"error": {"code": 502, "message": "upstream gone"}})]),
        &expect![[r#"
        text "Hel"
        error provider: upstream gone"#]],
    );
    let orphan = json!({"tool_calls": [{"index": 3, "function": {"arguments": "{}"}}]});
    check_stream(
        &stream(&[delta(&orphan)]),
        &expect!["error connection: the connection ended before the answer was complete"],
    );
    let many: Vec<Value> =
        (0..500).map(|at| json!({"index": at, "id": format!("c{at}"), "function": {"name": "f"}})).collect();
    let (events, error) = decode(
        Chat::default().decoder(&asking(true), &HeaderMap::new()),
        stream(&[delta(&json!({"tool_calls": many}))]).as_bytes(),
        1000,
    );
    assert_eq!(
        (events.len(), error.expect("an error").message.as_str()),
        (128, "the answer calls more than 128 tools")
    );
}

#[test]
fn many_small_values_are_refused() {
    let details = vec![json!(1); 100_000];
    let (_, error) = decode(
        Chat::default().decoder(&asking(true), &HeaderMap::new()),
        stream(&[delta(&json!({"reasoning_details": details}))]).as_bytes(),
        1 << 20,
    );
    assert_eq!(error.expect("an error").message, "the answer is larger than 8388608 bytes");
}

proptest! {
    #[test]
    fn any_json_is_read(value in json_value(), size in 1_usize..50) {
        let text = stream(&[delta(&value), json!({"choices": value}), finish("stop")]);
        let decoder = || Chat::default().decoder(&asking(true), &HeaderMap::new());
        prop_assert_eq!(decode(decoder(), text.as_bytes(), size), decode(decoder(), text.as_bytes(), 1 << 20));
        let _ = decode(Chat::default().decoder(&asking(false), &HeaderMap::new()), value.to_string().as_bytes(), size);
    }
}

/// Values with the members that the protocol knows, at places where they may not belong.
fn json_value() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "choices",
        "delta",
        "message",
        "tool_calls",
        "index",
        "id",
        "function",
        "name",
        "arguments",
        "content",
        "usage",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z{}\"é]{0,6}".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..5)
                .prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

#[test]
fn tools_without_parameters_have_an_empty_object() {
    let tool = atlas_model::Tool { input_schema: Value::Null, ..weather() };
    let request = Request { tools: vec![tool], ..asking(false) };
    assert_eq!(body(&request)["tools"][0]["function"]["parameters"], json!({"type": "object", "properties": {}}));
}
