//! Answers that are no success: refused, cut, empty; and calls that are tried for longer.

use atlas_llm_server::{Reply, Server};
use atlas_types::Assignment;
use serde_json::json;

use super::scene::{Scene, contract};
use super::stored::{spec, with};
use crate::support::{End, without_python};

async fn ended(provider: &str, mock: &str) -> (Scene, End) {
    let mut scene = Scene::set(&[("agent.yaml", &contract(provider, "")), ("mock.yaml", mock)], &[]).await;
    let only = scene.attempt(1, "{}");
    let end = scene.run(&only).await;
    (scene, end)
}

#[tokio::test]
async fn answers_that_are_no_success_fail_the_job_with_codes() {
    for (mock, code, text, steps) in [
        (
            "- {match: '*', text: I will not., stop: refused}\n",
            "E3209",
            "the model \"mock\" refused to answer, or the filter of its provider did: I will not.",
            2,
        ),
        (
            "- {match: '*', error: {kind: filtered, message: blocked}}\n",
            "E3209",
            "blocked (model \"mock\", 1 try): change the input or the system text",
            1,
        ),
        (
            "- {match: '*', text: '{\"summary\": ', stop: length}\n",
            "E3210",
            "the answer of the model \"mock\" was cut at its limit of tokens (max_tokens is 4096): raise provider.max_tokens",
            2,
        ),
        ("- {match: '*', text: ' '}\n", "E3211", "the model \"mock\" gave 3 answers in a row without text", 4),
    ] {
        let (scene, end) = ended("", mock).await;
        let error = end.error();
        assert!(error.starts_with(text), "{error}");
        assert_eq!((&end.metadata()["_error_code"], scene.journal.next()), (&json!(code), steps));
        scene.node.shutdown().await;
    }
}

#[tokio::test]
async fn a_cut_text_is_delivered_and_said() {
    let mock = "- {match: '*', text: Once upon a, stop: length}\n";
    let (scene, end) = ended("    output_format: text\n", mock).await;
    assert_eq!(end.output(&scene.controller), r#"{"result":"Once upon a"}"#);
    assert_eq!(Scene::metadata(&end)["_halted"], "length");
    let cut = "the answer of the model \"mock\" was cut at its limit of tokens (max_tokens is 4096)";
    assert!(scene.session.events.iter().any(|event| event.text.starts_with(cut)), "{:?}", scene.session.events);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_provider_that_limits_calls_for_seconds_fails_no_job() {
    let server = Server::start(|_, number| match number {
        0..3 => Reply::Error { status: 429, text: "slow down".to_owned() },
        _ => Reply::text("{}"),
    });
    let server = server.expect("a server");
    let variables = [("ANTHROPIC_BASE_URL", server.base_url()), ("ANTHROPIC_API_KEY", "key".to_owned())];
    let mut scene = Scene::set(&[("agent.yaml", &contract("", ""))], &variables).await;
    let only = scene.attempt(1, "{}");
    assert_eq!(scene.run(&only).await.output(&scene.controller), "{}");
    assert_eq!(server.requests().len(), 4);
    assert!(scene.session.events.iter().any(|event| event.text.starts_with("no model answered: slow down; ")));
    scene.node.shutdown().await;
}

#[tokio::test]
async fn answers_without_usage_are_counted_by_an_estimate_under_a_budget() {
    let graph = "name: thinker\nstart: a\nnodes:\n  a: {type: llm, prompt: p, next: e}\n  e: {type: end}\n";
    let graph_contract = "agent:\n  name: thinker\n  version: 1.0.0\n  provider: {type: graph}\n";
    let python_contract = "agent: {name: thinker, version: 1.0.0, model: {preference: fast}}\n";
    let python = "from atlas.runtime.base import AgentBase\n\n\nclass Thinker(AgentBase):\n    async def execute(self, input_data):\n        \
                  return {\"said\": (await self.context.llm.complete(\"p\")).text}\n";
    let llm_contract = contract("", "");
    let llm: &[(&str, &str)] = &[("agent.yaml", &llm_contract)];
    let graph: &[(&str, &str)] = &[("agent.yaml", graph_contract), ("graph.yaml", graph)];
    let python: &[(&str, &str)] = &[("agent.yaml", python_contract), ("agent.py", python)];
    let kinds = [llm, graph, python].into_iter().take(if without_python() { 2 } else { 3 });
    for (files, (tokens, estimated)) in
        kinds.flat_map(|files| [([0, 0], true), ([10, 5], false)].map(|case| (files, case)))
    {
        let server = Server::start(move |_, _| Reply::Message {
            content: vec![json!({"type": "text", "text": "{\"said\": \"something of some length\"}"})],
            tokens,
        });
        let server = server.expect("a server");
        let mut scene = Scene::set(files, &[]).await;
        let assignment = with(scene.attempt(1, "{}"), &[("small", spec(&server, "tiny"))]);
        let end = scene.run(&Assignment { budget_nanodollars: Some(50_000_000), ..assignment }).await;
        let usage = &scene.journal.steps[1].usage;
        assert!(usage.cost_nanodollars > 0 && usage.tokens_output > 0, "{usage:?}");
        assert_eq!(Scene::metadata(&end).get("_trace_usage") == Some(&json!("estimated")), estimated);
        scene.node.shutdown().await;
    }
}
