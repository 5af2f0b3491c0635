//! Jobs of the cluster's agent for one model call: the answer is the output, tools are not run, and a call is paid for once.

use atlas_llm_server::{Reply, Server};
use atlas_model::live::{LiveReader, mark_of};
use atlas_model::{Answer, CALL_CONTRACT, Delta, Message, Part, Request, Stop, Tool};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::scene::Scene;
use super::stored::{spec, with};

async fn scene() -> Scene {
    Scene::set(&[("agent.yaml", CALL_CONTRACT)], &[]).await
}

/// The input for a request with a tool.
fn input(model: &str) -> String {
    let tool =
        Tool { name: "add".to_owned(), description: "Adds.".to_owned(), input_schema: json!({"type": "object"}) };
    let request = Request { messages: vec![Message::user("1+2?")].into(), tools: vec![tool], ..Request::default() };
    let mut request = serde_json::to_value(request).expect("JSON");
    request.as_object_mut().expect("an object").remove("model");
    json!({"model": model, "request": request, "stream": true, "echo": {"a": 1}}).to_string()
}

fn streams(server: &Server) -> Value {
    let mut spec = spec(server, "tiny");
    spec["stream"] = true.into();
    spec["capabilities"] = json!(["tools"]);
    spec
}

fn thinks() -> Reply {
    let text = json!({"type": "text", "text": "I will add."});
    let call = json!({"type": "tool_use", "id": "call_1", "name": "add", "input": {"a": 1}});
    Reply::Message { content: vec![text, call], tokens: [10, 5] }
}

#[tokio::test]
async fn the_answer_is_the_output_and_is_followed_in_parts() {
    let server = Server::start(|_, _| thinks()).expect("a server");
    let mut scene = scene().await;
    let only = with(scene.attempt(1, &input("small")), &[("small", streams(&server))]);
    let end = scene.run(&only).await;
    let answer: Answer = serde_json::from_str(&end.output(&scene.controller)).expect("an answer");
    assert_eq!((answer.text().as_str(), &answer.stop, answer.usage.input), ("I will add.", &Stop::Tools, 10));
    let Part::ToolCall(call) = &answer.parts[1] else { panic!("{answer:?}") };
    assert_eq!((call.name.as_str(), &call.arguments), ("add", &json!({"a": 1})));
    assert_eq!(server.requests().len(), 1, "no tool was run, and the model was asked once");
    let metadata = Scene::metadata(&end);
    assert_eq!((&metadata["_trace_input_tokens"], &metadata["_trace_output_tokens"]), (&json!(10), &json!(5)));
    assert_eq!(scene.journal.steps[1].usage.cost_nanodollars, 10 * 1_000 + 5 * 2_000);

    let mut reader = LiveReader::default();
    let mut shown = String::new();
    for piece in &scene.session.deltas {
        for delta in reader.read(mark_of(piece.step), &piece.text).expect("complete pieces") {
            shown += &match delta {
                Delta::Text(text) => text,
                Delta::Call { index, name, .. } => format!("[{index} {name}]"),
                Delta::Arguments { text, .. } => text,
                Delta::Reasoning(text) => format!("({text})"),
            };
        }
    }
    assert_eq!(shown, r#"I will add.[0 add]{"a":1}"#);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_lost_attempt_pays_no_call_twice() {
    let server = Server::start(|_, _| thinks()).expect("a server");
    let mut scene = scene().await;
    let lost = with(scene.attempt(1, &input("small")), &[("small", streams(&server))]);
    scene.session.grant(&lost).await;
    // The settings, and the call.
    assert!(scene.record_until(2).await.is_none());
    scene.stop(&lost).await;
    let next = with(scene.attempt(2, &input("small")), &[("small", streams(&server))]);
    let end = scene.run(&next).await;
    let answer: Answer = serde_json::from_str(&end.output(&scene.controller)).expect("an answer");
    assert_eq!((answer.text().as_str(), server.requests().len()), ("I will add.", 1));
    assert_eq!(Scene::metadata(&end)["_trace_input_tokens"], 10);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_fallback_answers_and_the_cost_is_its_own() {
    let down = Server::start(|_, _| Reply::Error { status: 400, text: "no".to_owned() }).expect("a server");
    let server = Server::start(|_, _| thinks()).expect("a server");
    let mut scene = scene().await;
    let mut first = streams(&down);
    first["retry"] = json!({"attempts": 1});
    first["name"] = "unreachable".into();
    first["base_url"] = "http://127.0.0.1:9".into();
    let models = [("small", first), ("large", streams(&server))];
    let only = with(scene.attempt(1, &input("small")), &models);
    let end = scene.run(&only).await;
    let answer: Answer = serde_json::from_str(&end.output(&scene.controller)).expect("an answer");
    assert_eq!(answer.text(), "I will add.");
    scene.node.shutdown().await;
}

async fn check(input: &str, model: impl FnOnce(&Server) -> Value, code: &str, expected: &Expect) {
    let server = Server::start(|_, _| Reply::Error { status: 400, text: "too hot".to_owned() }).expect("a server");
    let mut scene = scene().await;
    let only = with(scene.attempt(1, input), &[("small", model(&server))]);
    let end = scene.run(&only).await;
    expected.assert_eq(&end.error().replace(&server.address().to_string(), "ADDRESS"));
    assert_eq!(end.metadata()["_error_code"], code);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn what_cannot_be_called_is_explained() {
    check(&input("small"), streams, "E3201", &expect![[r#"too hot (model "small", tiny at ADDRESS, status 400, 1 try): change what the provider names: the input, the contract, or the settings of the model"#]]).await;
    let embeds = |server: &Server| json!({"type": "embedding", "provider": "openai", "name": "e", "base_url": server.base_url(), "key": "secret://key"});
    check(
        &input("small"),
        embeds,
        "E3202",
        &expect![[r#"the model "small" is for other work; its type must be chat"#]],
    )
    .await;
    check(
        r#"{"model": "small", "request": {"messages": 1}}"#,
        streams,
        "E1102",
        &expect!["Input validation: invalid type: integer `1`, expected a sequence"],
    )
    .await;
}
