//! Agents whose answers come from `mock.yaml`.

use std::sync::Arc;

use atlas_types::{Payload, Step};
use serde_json::json;

use super::scene::{Scene, contract};

const MOCK: &str = r#"
- match: { round: 1 }
  text: Let me look.
  tool_calls: [{ name: lookup, arguments: { q: x } }]
  usage: { input: 10, output: 3 }
- match: "*"
  times: 1
  error: { kind: rate_limited, message: slow down, retry_after_seconds: 0.01 }
- match: { round: 2 }
  text: '{"summary": "short"}'
  usage: { input: 20, output: 4 }
"#;

#[tokio::test]
async fn a_job_runs_on_its_mock_and_says_so() {
    let mut scene = Scene::set(&[("agent.yaml", &contract("", "")), ("mock.yaml", MOCK)], &[]).await;
    let first = scene.attempt(1, r#"{"text":"long"}"#);
    let end = scene.run(&first).await;
    assert_eq!(end.output(&scene.controller), r#"{"summary":"short"}"#);
    let metadata = Scene::metadata(&end);
    assert_eq!(metadata["_trace_model"], "mock");
    assert_eq!((&metadata["_trace_input_tokens"], &metadata["_trace_output_tokens"]), (&json!(30), &json!(7)));
    let steps = scene.steps();
    assert!(steps[0].starts_with(r#"start 0+0 {"level":1,"source":"mock","settings":{"model":"mock""#), "{}", steps[0]);
    assert!(steps[1].starts_with("model 10+3 ") && steps[2].starts_with("model 20+4 "), "{steps:?}");
    assert_eq!(steps.len(), 3);
    let said: Vec<&str> = scene.session.events.iter().map(|event| event.text.as_str()).collect();
    let mock = "the answers come from mock.yaml, because no model is configured";
    assert_eq!(said, [mock, "mock: slow down; the next try is in 0.0 s"]);
    // The second call was tried twice, and its pieces name the try that succeeded.
    let pieces = |step: u32, try_number: u32| -> String {
        let own = scene.session.deltas.iter().filter(|delta| (delta.step, delta.try_number) == (step, try_number));
        own.map(|delta| delta.text.as_str()).collect()
    };
    assert_eq!((pieces(1, 1), pieces(2, 2)), ("Let me look.".to_owned(), r#"{"summary": "short"}"#.to_owned()));
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_later_attempt_takes_recorded_answers() {
    let mut scene = Scene::set(&[("agent.yaml", &contract("", "")), ("mock.yaml", MOCK)], &[]).await;
    let first = scene.attempt(1, "{}");
    scene.run(&first).await;
    // A mark in the recorded answer shows where the answer of the second attempt comes from.
    let last = Arc::clone(&scene.journal.steps[2]);
    let marked = scene.controller.text(&last.outcome).replace("short", "recorded");
    scene.journal.steps[2] = Arc::new(Step { outcome: Payload::inline(marked.as_bytes()), ..(*last).clone() });
    let second = scene.attempt(2, "{}");
    assert_eq!(scene.run(&second).await.output(&scene.controller), r#"{"summary":"recorded"}"#);
    assert_eq!(scene.journal.next(), 3);
    // A job with another input asks something else.
    let other = scene.attempt(3, r#"{"other":1}"#);
    let error = scene.run(&other).await.error();
    assert!(error.starts_with("E3013: step 1 is recorded as model "), "{error}");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn the_output_is_validated_and_the_limit_of_requests_holds() {
    let more = "  output: {schema: {required: [summary]}}\n";
    let mut scene =
        Scene::set(&[("agent.yaml", &contract("    max_iterations: 1\n", more)), ("mock.yaml", MOCK)], &[]).await;
    let only = scene.attempt(1, "{}");
    let end = scene.run(&only).await;
    assert_eq!(end.error(), "Output validation: 'summary' is a required property");
    assert_eq!(end.metadata()["_trace_input_tokens"], 10);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn failures_have_codes() {
    let error = "- match: '*'\n  error: { kind: credentials, message: wrong key }\n";
    for (files, text, code) in [
        (
            vec![("mock.yaml", error)],
            "wrong key (model \"mock\", 1 try): set the key of the model to one that the provider accepts",
            "E3201",
        ),
        (
            vec![],
            "there is no model for the tier \"balanced\": the namespace has no model for it (atlasctl model add), the environment of the worker has neither ATLAS_API_KEY, ANTHROPIC_API_KEY, ATLAS_OPENAI_API_KEY nor OPENAI_API_KEY, and the agent has no mock.yaml",
            "E3202",
        ),
        (vec![("mock.yaml", "[{}]")], "mock.yaml: rule 1: the member \"match\" is missing", "E3202"),
    ] {
        let contract = contract("", "");
        let files: Vec<(&str, &str)> = std::iter::once(("agent.yaml", contract.as_str())).chain(files).collect();
        let mut scene = Scene::set(&files, &[]).await;
        let only = scene.attempt(1, "{}");
        let end = scene.run(&only).await;
        assert_eq!((end.error(), &end.metadata()["_error_code"]), (text.to_owned(), &json!(code)));
        scene.node.shutdown().await;
    }
}

#[tokio::test]
async fn images_of_the_input_are_checked() {
    let files =
        [("agent.yaml", &contract("    images: pictures\n", "")[..]), ("mock.yaml", "- match: '*'\n  text: '{}'\n")];
    let mut scene = Scene::set(&files, &[]).await;
    let broken = scene.attempt(1, r#"{"pictures":[{"data":"AA=="}]}"#);
    let end = scene.run(&broken).await;
    assert_eq!(end.error(), "Input validation: 'pictures/0' has no \"data\" and \"mime_type\"");
    scene.journal = Default::default();
    let good = scene.attempt(1, r#"{"pictures":[{"data":"AA==","mime_type":"image/png"}]}"#);
    assert_eq!(scene.run(&good).await.output(&scene.controller), "{}");
    scene.node.shutdown().await;
}
