//! A conversation with a tool, held in the protocol of each provider with a strict server.

use std::sync::Arc;
use std::time::Duration;

use atlas_llm::client::{Client, Progress, Target};
use atlas_llm::{Endpoint, Protocol};
use atlas_model::{Delta, Message, Part, Request, Role, Tool, ToolChoice, ToolResult};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::machine::run;
use crate::server::{Check, Reply, Seen, Server};
use crate::{chat, strict};

const HOST: &str = "localhost:1";

/// Asks, runs the tools that the model calls, and asks again. Both requests pass the server's check, or the reason is compared.
fn check(protocol: impl Protocol + 'static, base: &str, rule: Check, replies: Vec<Reply>, expected: &Expect) {
    let log = run(|env, network| async move {
        let server = Server::start(&env, &network, HOST, rule, replies);
        let endpoint = Endpoint { base_url: format!("http://{HOST}{base}"), headers: Vec::new() };
        let target = [Target { attempts: 1, ..Target::new("model", "m-1", Arc::new(protocol), endpoint) }];
        let client = Client::new(env);
        let mut log = Vec::new();
        let mut watch = |progress: Progress<'_>| {
            if let Progress::Delta(delta) = progress {
                log.push(line(&delta));
            }
        };
        let mut request = question();
        let hour = Duration::from_secs(3600);
        for _ in 0..2 {
            let called = client.call(&target, &request, hour, &mut watch).await;
            let answer = match called {
                Ok(done) => done.answer,
                Err(failure) => return format!("{failure}"),
            };
            let result = |call: &atlas_model::ToolCall| {
                let (call, name) = (call.id.clone(), call.name.clone());
                Part::ToolResult(ToolResult { call, name, content: "sunny".to_owned(), error: false })
            };
            request.messages.push(answer.message());
            request.messages.push(Message { role: Role::User, parts: answer.tool_calls().map(result).collect() });
            request.tool_choice = ToolChoice::Auto;
        }
        assert_eq!((server.seen().len(), server.left()), (2, 0));
        log.join("\n")
    });
    expected.assert_eq(&log);
}

fn question() -> Request {
    let input_schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    Request {
        system: "Be brief.".to_owned(),
        messages: vec![Message::user("Weather?")].into(),
        tools: vec![Tool { name: "weather".to_owned(), description: "Weather.".to_owned(), input_schema }],
        max_tokens: Some(100),
        stream: true,
        ..Request::default()
    }
}

fn line(delta: &Delta) -> String {
    match delta {
        Delta::Text(text) => format!("text {text}"),
        Delta::Reasoning(text) => format!("reasoning {text}"),
        Delta::Call { index, id, name } => format!("call {index} {id} {name}"),
        Delta::Arguments { index, text } => format!("arguments {index} {text}"),
    }
}

#[test]
fn openai_chat() {
    let protocol = atlas_llm::openai::Chat::openai(chat::KEY.into());
    let call =
        |arguments: &str| json!({"index": 0, "id": "a", "function": {"name": "weather", "arguments": arguments}});
    let chunk = |delta: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta}]});
    let first = [
        chunk(json!({"tool_calls": [call("{\"city\":")]})),
        chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"Bern\"}"}}]})),
        chat::finish(),
    ];
    let second = [chat::text("Sunny."), chat::finish()];
    check(
        protocol,
        "/v1",
        chat::strict,
        vec![Reply::events(&first), Reply::events(&second)],
        &expect![[r#"
        call 0 a weather
        arguments 0 {"city":
        arguments 0 "Bern"}
        text Sunny."#]],
    );
}

#[test]
fn openai_responses() {
    let protocol = atlas_llm::openai::Responses::openai(chat::KEY.into());
    let call = json!({"type": "function_call", "id": "fc", "call_id": "a", "name": "weather", "arguments": "{\"city\":\"Bern\"}"});
    let added = json!({"type": "function_call", "id": "fc", "call_id": "a", "name": "weather", "arguments": ""});
    let message =
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Sunny."}]});
    let completed = |item: &Value| json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [item]}});
    let first = [
        json!({"type": "response.output_item.added", "output_index": 0, "item": added}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{\"city\":\"Bern\"}"}),
        completed(&call),
    ];
    let second =
        [json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Sunny."}), completed(&message)];
    check(
        protocol,
        "/v1",
        strict::responses,
        vec![Reply::events(&first), Reply::events(&second)],
        &expect![[r#"
        call 0 a weather
        arguments 0 {"city":"Bern"}
        text Sunny."#]],
    );
}

#[test]
fn ollama() {
    let lines = |lines: &[Value]| {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        Reply::new(200, "application/x-ndjson", text)
    };
    let call = json!({"function": {"name": "weather", "arguments": {"city": "Bern"}}});
    let piece = |message: Value| json!({"model": "m-1", "message": message, "done": false});
    let done =
        json!({"model": "m-1", "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop"});
    let first = lines(&[piece(json!({"role": "assistant", "content": "", "tool_calls": [call]})), done.clone()]);
    let second = lines(&[piece(json!({"role": "assistant", "content": "Sunny."})), done]);
    check(
        atlas_llm::ollama::Ollama::default(),
        "",
        strict::ollama,
        vec![first, second],
        &expect![[r#"
        call 0 call_1_0 weather
        arguments 0 {"city":"Bern"}
        text Sunny."#]],
    );
}

#[test]
fn the_servers_are_strict() {
    let refuse = |rule: Check, path: &str, body: Value| {
        let headers = [
            ("content-type", "application/json"),
            ("authorization", &format!("Bearer {}", chat::KEY)),
            ("user-agent", "atlas/0"),
        ];
        let headers = headers.iter().map(|(name, value)| {
            (http::HeaderName::from_bytes(name.as_bytes()).expect("a name"), value.parse().expect("a value"))
        });
        rule(&Seen {
            method: http::Method::POST,
            uri: path.parse().expect("a path"),
            headers: headers.collect(),
            body,
            bytes: axum::body::Bytes::new(),
        })
    };
    let orphan = json!({"model": "m", "messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}]});
    let results = [
        refuse(chat::strict, "/v1/chat/completions", orphan.clone()),
        refuse(chat::strict, "/v1/chat/completions", json!({"model": "m", "messages": [], "typo": 1})),
        refuse(
            strict::responses,
            "/v1/responses",
            json!({"model": "m", "store": false, "input": [{"type": "function_call_output", "call_id": "x", "output": "y"}]}),
        ),
        refuse(strict::responses, "/v1/responses", json!({"model": "m", "store": true, "input": []})),
        refuse(strict::ollama, "/api/chat", orphan),
        refuse(strict::ollama, "/api/chat", json!({"model": "m", "messages": [], "stream": false, "temperature": 1})),
    ];
    expect![[r#"
        a result for x, which nobody called
        unknown member typo
        an output of no call
        the answer would be stored
        null is no text
        unknown member temperature"#]]
    .assert_eq(&results.map(|result| result.expect_err("refused")).join("\n"));
}
