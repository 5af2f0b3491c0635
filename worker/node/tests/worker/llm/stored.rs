//! Agents whose models came with the lease.

use atlas_llm_server::{Reply, Server};
use atlas_types::{
    Assignment, AttachedModel, AttachedSecret, Attachment, Attachments, SecretSource, SecretText, StepsResult,
};
use serde_json::{Value, json};

use super::scene::{Scene, contract};
use crate::support::End;

pub(super) const CANARY: &str = "sk-canary-0123456789";

/// Models, and the secret that they refer to.
fn attached(models: &[(&str, Value)], secret: &str) -> Attachments {
    let model = |(name, spec): &(&str, Value)| AttachedModel {
        name: (*name).to_owned(),
        spec: spec.to_string().into_bytes().into(),
        asked: Vec::new(),
    };
    let secret = AttachedSecret { source: SecretSource::Value(SecretText::new(secret)), declared: false };
    Attachments::new([
        Attachment::Models(models.iter().map(model).collect()),
        Attachment::Secrets([("key".to_owned(), secret)].into()),
    ])
}

pub(super) fn spec(server: &Server, name: &str) -> Value {
    json!({"provider": "anthropic", "name": name, "base_url": server.base_url(), "key": "secret://key",
        "prices": {"input": "1", "output": "2"}, "retry": {"attempts": 1}, "stream": false})
}

pub(super) fn with(assignment: Assignment, models: &[(&str, Value)]) -> Assignment {
    Assignment { attachments: attached(models, CANARY), ..assignment }
}

#[tokio::test]
async fn a_stored_model_comes_before_the_environment_and_the_mock() {
    let server = Server::start(|_, _| Reply::text("{\"a\": 1}")).expect("a server");
    let other = Server::start(|_, _| Reply::text("{}")).expect("a server");
    let variables = [("ANTHROPIC_BASE_URL", other.base_url()), ("ANTHROPIC_API_KEY", "other".to_owned())];
    let text = contract("    system_prompt: Be brief.\n", "");
    let mut scene = Scene::set(&[("agent.yaml", &text), ("mock.yaml", "[]")], &variables).await;
    let only = with(scene.attempt(1, "{}"), &[("small", spec(&server, "tiny"))]);
    let end = scene.run(&only).await;
    assert_eq!(end.output(&scene.controller), r#"{"a":1}"#);
    assert_eq!((server.keys(), other.requests().len()), (vec![CANARY.to_owned()], 0));
    assert_eq!(server.requests()[0]["model"], "tiny");
    let steps = scene.steps();
    assert!(steps[0].contains(r#""source":{"stored":[{"name":"small","#), "{}", steps[0]);
    assert_eq!(scene.journal.steps[1].usage.cost_nanodollars, 10 * 1_000 + 5 * 2_000);
    assert!(!format!("{steps:?} {end:?}").contains("canary"));
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_call_whose_answer_consists_of_a_secret_is_made_and_paid_once() {
    let graph = "name: flow\nstart: a\nnodes:\n  a: {type: llm, prompt: p, state_updates: {a: \"{{output}}\"}, next: e}\n  \
                 e: {type: end, output: \"{{a}}\"}\n";
    let of_graph = "agent: {name: flow, version: 1.0.0, model: {preference: fast}, provider: {type: graph}}\n";
    let of_loop = contract("", "");
    let agents: [&[(&str, &str)]; 3] =
        [&[("agent.yaml", &of_loop)], &[("agent.yaml", of_graph), ("graph.yaml", graph)], &super::python::FILES];
    for files in agents {
        if files.iter().any(|(name, _)| name.ends_with(".py")) && crate::support::without_python() {
            continue;
        }
        let server = Server::start(|_, _| Reply::call("c", "unknown", &json!({}))).expect("a server");
        let mut scene = Scene::set(files, &[]).await;
        // What a part of an answer is called.
        let attachments = attached(&[("small", spec(&server, "tiny"))], "tool_call");
        let first = scene.attempt(1, r#"{"say": "hello"}"#);
        let error = scene.run(&Assignment { attachments: attachments.clone(), ..first }).await.error();
        assert!(error.contains("the answer consists of a secret where"), "{files:?} {error}");
        let cost: u64 = scene.journal.steps.iter().map(|step| step.usage.cost_nanodollars).sum();
        assert_eq!(cost, 10 * 1_000 + 5 * 2_000, "{files:?} {:?}", scene.steps());
        assert!(scene.steps()[1].contains(r#"{"unusable":"#), "{:?}", scene.steps());
        let again = scene.attempt(2, r#"{"say": "hello"}"#);
        assert_eq!(scene.run(&Assignment { attachments, ..again }).await.error(), error);
        assert_eq!(server.requests().len(), 1, "{files:?}");
        scene.node.shutdown().await;
    }
}

#[tokio::test]
async fn a_fallback_answers_at_its_own_price() {
    let broken =
        Server::start(|_, _| Reply::Error { status: 500, text: format!("broken {CANARY}") }).expect("a server");
    let server = Server::start(|_, _| Reply::text("{}")).expect("a server");
    let mut dear = spec(&server, "dear");
    dear["prices"] = json!({"input": "10", "output": "20"});
    let mut keyless = spec(&server, "keyless");
    keyless["key"] = json!("secret://nowhere");
    let models = [("small", spec(&broken, "tiny")), ("keyless", keyless), ("dear", dear)];
    let mut scene = Scene::set(&[("agent.yaml", &contract("", ""))], &[]).await;
    let only = with(scene.attempt(1, "{}"), &models);
    scene.run(&only).await;
    assert_eq!(scene.journal.steps[1].usage.cost_nanodollars, 10 * 10_000 + 5 * 20_000);
    assert!(scene.steps()[1].contains(r#""place":2"#), "{:?}", scene.steps());
    let lines: Vec<&str> = scene.session.events.iter().map(|event| event.text.as_str()).collect();
    let missing =
        r#"the model "keyless" cannot be called: the secret "nowhere" is not set; the model refers to it in its key"#;
    assert_eq!(lines, [missing, "small: broken [redacted]"]);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_lost_attempt_keeps_its_models_and_takes_their_new_address() {
    let first = Server::start(|_, _| Reply::call("c", "unknown", &json!({}))).expect("a server");
    let second = Server::start(|_, _| Reply::text("{\"done\": true}")).expect("a server");
    let mut scene = Scene::set(&[("agent.yaml", &contract("", ""))], &[]).await;
    let lost = with(scene.attempt(1, "{}"), &[("small", spec(&first, "tiny"))]);
    scene.session.grant(&lost).await;
    assert!(scene.record_until(2).await.is_none());
    scene.stop(&lost).await;
    let next = with(scene.attempt(2, "{}"), &[("small", spec(&second, "tiny"))]);
    assert_eq!(scene.run(&next).await.output(&scene.controller), r#"{"done":true}"#);
    assert_eq!((first.requests().len(), second.requests().len()), (1, 1));
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_budget_needs_known_prices() {
    let server = Server::start(|_, _| Reply::text("{}")).expect("a server");
    let mut unpriced = spec(&server, "tiny");
    unpriced.as_object_mut().expect("an object").remove("prices");
    for (model, code) in [(unpriced, Some("E3203")), (spec(&server, "tiny"), None)] {
        let mut scene = Scene::set(&[("agent.yaml", &contract("", ""))], &[]).await;
        let assignment = with(scene.attempt(1, "{}"), &[("small", model)]);
        let end = scene.run(&Assignment { budget_nanodollars: Some(50_000_000), ..assignment }).await;
        match (&end, code) {
            (End::Failed { failure, .. }, Some(code)) => {
                assert_eq!(end.metadata()["_error_code"], code);
                assert!(failure.error.starts_with("the price of the model \"tiny\""), "{}", failure.error);
            }
            (End::Completed { .. }, None) => {}
            _ => panic!("{end:?}"),
        }
        scene.node.shutdown().await;
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_call_is_reserved_before_it_is_made_and_waits_while_others_hold_the_rest() {
    let server = Server::start(|_, _| Reply::text("{}")).expect("a server");
    let mut scene = Scene::set(&[("agent.yaml", &contract("", ""))], &[]).await;
    scene.budget = [StepsResult::Busy, StepsResult::Busy].into();
    let assignment = with(scene.attempt(1, "{}"), &[("small", spec(&server, "tiny"))]);
    let end = scene.run(&Assignment { budget_nanodollars: Some(50_000_000), ..assignment }).await;
    assert!(matches!(end, End::Completed { .. }), "{end:?}");
    // 4,096 tokens of an answer cost 8,192,000; the request adds to that.
    let reserved = scene.reserved.clone();
    assert!(reserved.len() == 3 && reserved.iter().all(|amount| *amount == reserved[0]), "{reserved:?}");
    assert!((8_192_000..9_000_000).contains(&reserved[0]), "{reserved:?}");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_call_for_which_the_tree_has_spent_too_much_is_not_made() {
    let server = Server::start(|_, _| Reply::text("{}")).expect("a server");
    let mut scene = Scene::set(&[("agent.yaml", &contract("", ""))], &[]).await;
    scene.budget = [StepsResult::OverBudget { budget: 50_000_000, spent: 48_000_000 }].into();
    let assignment = with(scene.attempt(1, "{}"), &[("small", spec(&server, "tiny"))]);
    let end = scene.run(&Assignment { budget_nanodollars: Some(50_000_000), ..assignment }).await;
    assert_eq!(end.metadata()["_error_code"], "E3203");
    assert!(end.error().contains("$0.0020"), "{}", end.error());
    assert_eq!(server.requests().len(), 0);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn plain_http_to_another_machine_is_refused() {
    let server = Server::start(|_, _| Reply::text("{}")).expect("a server");
    let mut far = spec(&server, "tiny");
    far["base_url"] = json!("http://192.0.2.1/v1");
    let mut scene = Scene::set(&[("agent.yaml", &contract("", ""))], &[]).await;
    let assignment = with(scene.attempt(1, "{}"), &[("far", far)]);
    let error = scene.run(&assignment).await.error();
    assert!(error.starts_with("the address of the model is plain HTTP to \"192.0.2.1\""), "{error}");
    scene.node.shutdown().await;
}

/// A fork replays the copied steps with what they were recorded with, and calls the other model after them.
#[tokio::test]
async fn a_fork_goes_on_with_another_model_after_the_copied_steps() {
    let first = Server::start(|_, number| match number {
        0 => Reply::call("c", "unknown", &json!({})),
        _ => Reply::text("{\"by\": \"tiny\"}"),
    });
    let (first, second) = (first.expect("a server"), Server::start(|_, _| Reply::text("{\"by\": \"large\"}")));
    let second = second.expect("a server");
    let mut scene = Scene::set(&[("agent.yaml", &contract("", ""))], &[]).await;
    let whole = with(scene.attempt(1, "{}"), &[("small", spec(&first, "tiny"))]);
    assert_eq!(scene.run(&whole).await.output(&scene.controller), r#"{"by":"tiny"}"#);
    scene.journal.steps.truncate(2);
    let other = [("large", spec(&second, "huge"))];
    let fork = Assignment { fork_steps: Some(2), ..with(scene.attempt(1, "{}"), &other) };
    scene.session.grant(&fork).await;
    assert!(scene.record_until(3).await.is_none());
    scene.stop(&fork).await;
    // The next attempt of the fork finds what it is fixed to in the journal.
    let next = Assignment { fork_steps: Some(2), ..with(scene.attempt(2, "{}"), &other) };
    assert_eq!(scene.run(&next).await.output(&scene.controller), r#"{"by":"large"}"#);
    let kinds: Vec<&str> = scene.journal.steps.iter().map(|step| step.kind.as_str()).collect();
    assert_eq!(kinds, ["start", "model", "start", "model"]);
    assert_eq!((first.requests().len(), second.requests().len()), (2, 1));
    // A fork of the fork goes on as that did; the key of the first model is not needed any more.
    scene.journal.steps.truncate(3);
    let again = with(scene.attempt(1, "{}"), &other);
    assert_eq!(scene.run(&again).await.output(&scene.controller), r#"{"by":"large"}"#);
    assert_eq!((first.requests().len(), second.requests().len()), (2, 2));
    let asked = &second.requests()[0];
    assert_eq!((&asked["model"], asked["messages"].as_array().map(Vec::len)), (&json!("huge"), Some(3)));
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_probe_calls_no_model_and_says_what_it_found() {
    let server = Server::start(|_, _| Reply::text("never asked")).expect("a server");
    let probed = async |model: Value| {
        let mut scene = Scene::set(&[("agent.yaml", &contract("    probe: yes\n", ""))], &[]).await;
        let only = with(scene.attempt(1, "{}"), &[("small", model)]);
        let end = scene.run(&only).await;
        assert_eq!(scene.journal.next(), 0);
        let models = Scene::metadata(&end)["_models"].clone();
        let output: Value = serde_json::from_str(&end.output(&scene.controller)).expect("JSON");
        scene.node.shutdown().await;
        (output, models)
    };
    let (output, models) = probed(spec(&server, "tiny")).await;
    assert_eq!((&output["health"], &output["model"]), (&json!("reachable"), &json!("tiny")));
    assert!(output["latency_ms"].is_number() && models["small"]["reachable"] == true, "{models}");
    let (output, models) = probed(spec(&server, "unknown")).await;
    assert_eq!((&output["health"], &output["kind"]), (&json!("failed"), &json!("unknown_model")));
    assert_eq!(models["small"], json!({"reachable": false, "error": "model: unknown"}));
    let mut keyless = spec(&server, "tiny");
    keyless["key"] = json!("secret://nowhere");
    let mut scene = Scene::set(&[("agent.yaml", &contract("", ""))], &[]).await;
    let only = with(scene.attempt(1, "{}"), &[("small", keyless)]);
    let models = scene.run(&only).await.metadata()["_models"].clone();
    assert_eq!(models["small"]["reachable"], false, "{models}");
    scene.node.shutdown().await;
    assert_eq!((server.requests().len(), server.keys().len()), (0, 0));
}
