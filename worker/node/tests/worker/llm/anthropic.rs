//! Agents whose model is chosen by the worker's environment.

use std::sync::atomic::{AtomicUsize, Ordering};

use atlas_llm_server::{Reply, Server};
use atlas_types::FailureKind;
use serde_json::json;

use super::scene::{Scene, contract};
use crate::support::End;

fn variables(server: &Server) -> Vec<(&'static str, String)> {
    vec![("ANTHROPIC_BASE_URL", server.base_url()), ("ANTHROPIC_API_KEY", "sk-canary-0123456789".to_owned())]
}

#[tokio::test]
async fn a_plain_agent_asks_as_atlas_for_python_does() {
    let server = Server::start(|_, _| Reply::text("{\"summary\": \"s\"}")).expect("a server");
    let text = contract("    system_prompt: Be brief.\n", "  model: {preference: fast}\n");
    let mut variables = variables(&server);
    variables.push(("ATLAS_MODEL_FAST", "tiny".to_owned()));
    let mut scene = Scene::set(&[("agent.yaml", &text), ("mock.yaml", "[]")], &variables).await;
    let only = scene.attempt(1, r#"{"text":"hi"}"#);
    let end = scene.run(&only).await;
    assert_eq!(end.output(&scene.controller), r#"{"summary":"s"}"#);
    let expected = json!({
        "model": "tiny", "max_tokens": 4096, "system": "Be brief.",
        "messages": [{"role": "user", "content": "{\"text\": \"hi\"}"}],
    });
    assert_eq!(server.requests(), [expected]);
    let metadata = Scene::metadata(&end);
    assert_eq!((&metadata["_trace_model"], &metadata["_trace_input_tokens"]), (&json!("tiny"), &json!(10)));
    assert!(scene.steps()[0].contains(r#""source":{"environment":"anthropic"}"#));
    scene.node.shutdown().await;
}

/// After each number of recorded steps the attempt is lost; the next attempt makes only the calls that are missing.
#[tokio::test]
async fn a_finished_call_is_never_made_again() {
    const ROUNDS: usize = 5;
    let server = Server::start(|_, number| match number {
        0..ROUNDS => Reply::call(&format!("c{number}"), "unknown", &json!({"n": number})),
        _ => Reply::text("{\"done\": true}"),
    });
    let server = server.expect("a server");
    let contract = contract("    max_iterations: 20\n", "");
    let mut scene = Scene::set(&[("agent.yaml", &contract)], &variables(&server)).await;
    // Step 0 and one call for each round, and one for the end.
    for attempt in 1..=(ROUNDS as u32 + 1) {
        let next = scene.attempt(attempt, "{}");
        scene.session.grant(&next).await;
        assert!(scene.record_until(u64::from(attempt)).await.is_none());
        scene.stop(&next).await;
    }
    let last = scene.attempt(99, "{}");
    assert_eq!(scene.run(&last).await.output(&scene.controller), r#"{"done":true}"#);
    assert_eq!(scene.journal.next(), ROUNDS as u64 + 2);
    let made: Vec<usize> =
        server.requests().iter().map(|request| request["messages"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(made, [1, 3, 5, 7, 9, 11]);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn failures_of_the_provider_are_tried_again_and_logged() {
    let server = Server::start(|_, number| match number {
        0 => Reply::Error { status: 529, text: "overloaded".to_owned() },
        _ => Reply::text("fine"),
    });
    let server = server.expect("a server");
    let contract = contract("    output_format: text\n    stream: yes\n", "");
    let mut scene = Scene::set(&[("agent.yaml", &contract)], &variables(&server)).await;
    let only = scene.attempt(1, "{}");
    assert_eq!(scene.run(&only).await.output(&scene.controller), r#"{"result":"fine"}"#);
    let lines: Vec<&str> = scene.session.events.iter().map(|event| event.text.as_str()).collect();
    assert!(lines[0].starts_with("claude-sonnet-4-20250514: overloaded; the next try is in "), "{lines:?}");
    let deltas: Vec<_> =
        scene.session.deltas.iter().map(|delta| (delta.step, delta.try_number, &delta.text[..])).collect();
    assert_eq!(deltas, [(1, 2, "fine")]);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn an_error_of_the_provider_fails_the_job_with_its_text_and_without_the_key() {
    let text = "invalid x-api-key sk-canary-0123456789";
    let server = Server::start(move |_, _| Reply::Error { status: 401, text: text.to_owned() }).expect("a server");
    let contract = contract("", "");
    let mut scene = Scene::set(&[("agent.yaml", &contract)], &variables(&server)).await;
    let only = scene.attempt(1, "{}");
    let end = scene.run(&only).await;
    let End::Failed { failure, .. } = &end else { panic!("{end:?}") };
    assert_eq!(failure.kind, FailureKind::Agent);
    assert!(failure.error.starts_with("invalid x-api-key") && !failure.error.contains("canary"), "{}", failure.error);
    assert_eq!(end.metadata()["_error_code"], "E3201");
    assert_eq!(scene.journal.next(), 1);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_call_ends_with_the_time_of_the_job() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let server = Server::start(|_, _| {
        ASKED.fetch_add(1, Ordering::SeqCst);
        Reply::Never
    });
    let server = server.expect("a server");
    let contract = contract("", "  execution_timeout: 2\n");
    let mut scene = Scene::set(&[("agent.yaml", &contract)], &variables(&server)).await;
    let only = scene.attempt(1, "{}");
    assert_eq!(scene.run(&only).await.error(), "Execution timed out after 2.0s");
    assert!(ASKED.load(Ordering::SeqCst) >= 1);
    scene.node.shutdown().await;
}
