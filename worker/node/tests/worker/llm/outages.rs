//! Providers that are down: the job waits, parks if that lasts, and goes on after the outage without another call of what was answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use atlas_env::Env;
use atlas_llm_server::{Reply, Server};
use atlas_types::{Assignment, Attachment, Attachments, Micros, SecretText, Wait};
use serde_json::{Value, json};

use super::scene::{Scene, contract};

/// A server that answers the first request with the tool call. After that it is down until it is told to be up.
fn server() -> (Server, Arc<AtomicBool>) {
    let up = Arc::new(AtomicBool::new(false));
    let is_up = Arc::clone(&up);
    let server = Server::start(move |_, number| match number {
        0 => Reply::call("c", "unknown", &json!({})),
        _ if is_up.load(Ordering::SeqCst) => Reply::text("{\"done\": true}"),
        _ => Reply::Error { status: 503, text: "the server is down".to_owned() },
    });
    (server.expect("a server"), up)
}

fn variables(server: &Server) -> Vec<(&'static str, String)> {
    vec![("ANTHROPIC_BASE_URL", server.base_url()), ("ANTHROPIC_API_KEY", "sk-canary-0123456789".to_owned())]
}

#[tokio::test]
async fn a_job_parks_while_its_provider_is_down_and_makes_no_answered_call_again() {
    let (server, up) = server();
    let mut scene = Scene::set(&[("agent.yaml", &contract("", ""))], &variables(&server)).await;
    let first = scene.attempt(1, "{}");
    scene.session.grant(&first).await;
    assert!(scene.record_until(u64::MAX).await.is_none(), "it parks");
    let steps = scene.steps();
    let kinds: Vec<&str> = steps.iter().filter_map(|step| step.split(' ').next()).collect();
    assert_eq!(kinds, ["start", "model", "sleep"]);
    assert!(steps[2].contains(r#"{"outage":{"model":"claude-sonnet-4-20250514","since_us":"#), "{}", steps[2]);
    assert!(steps[2].contains("the server is down"), "{}", steps[2]);
    // An attempt that finds the outage as it was parks again at once.
    let second = Assignment { job: first.job, ..scene.attempt(2, "{}") };
    let requests = server.requests().len();
    scene.session.grant(&second).await;
    assert!(scene.record_until(u64::MAX).await.is_none(), "it parks");
    assert_eq!((server.requests().len(), scene.journal.next()), (requests + 1, 3));
    let [one, two] = &scene.parked[..] else { panic!("{:?}", scene.parked) };
    for park in [one, two] {
        assert!(matches!(park.waits[..], [Wait::Time { .. }]) && park.journal_length == 3, "{park:?}");
    }
    assert!(two.used < one.used, "{one:?} {two:?}");
    up.store(true, Ordering::SeqCst);
    let third = Assignment { job: first.job, ..scene.attempt(3, "{}") };
    assert_eq!(scene.run(&third).await.output(&scene.controller), r#"{"done":true}"#);
    assert_eq!(scene.journal.next(), 4);
    let rounds: Vec<usize> =
        server.requests().iter().map(|request| request["messages"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(rounds.iter().filter(|messages| **messages == 1).count(), 1, "{rounds:?}");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_job_that_goes_on_from_another_waits_for_an_outage_of_its_own() {
    let (server, up) = server();
    let mut scene = Scene::set(&[("agent.yaml", &contract("", ""))], &variables(&server)).await;
    let first = scene.attempt(1, "{}");
    scene.session.grant(&first).await;
    assert!(scene.record_until(u64::MAX).await.is_none(), "it parks");
    let fork = scene.attempt(1, "{}");
    scene.session.grant(&fork).await;
    assert!(scene.record_until(u64::MAX).await.is_none(), "it parks");
    let steps = scene.steps();
    let kinds: Vec<&str> = steps.iter().filter_map(|step| step.split(' ').next()).collect();
    assert_eq!(kinds, ["start", "model", "sleep", "sleep"]);
    let requests = server.requests().len();
    let again = Assignment { job: fork.job, ..scene.attempt(2, "{}") };
    scene.session.grant(&again).await;
    assert!(scene.record_until(u64::MAX).await.is_none(), "it parks");
    assert_eq!((server.requests().len(), scene.journal.next()), (requests + 1, 4));
    up.store(true, Ordering::SeqCst);
    let last = Assignment { job: fork.job, ..scene.attempt(3, "{}") };
    assert_eq!(scene.run(&last).await.output(&scene.controller), r#"{"done":true}"#);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_leader_whose_clock_is_ahead_does_not_shorten_the_pauses() {
    let (server, _) = server();
    let mut scene = Scene::set(&[("agent.yaml", &contract("", ""))], &variables(&server)).await;
    scene.ahead = 1;
    let only = scene.attempt(1, "{}");
    scene.session.grant(&only).await;
    assert!(scene.record_until(u64::MAX).await.is_none(), "it parks");
    let [one, two] = &scene.parked[..] else { panic!("{:?}", scene.parked) };
    let between = two.used.as_duration().saturating_sub(one.used.as_duration());
    // The job has waited for 3 s when it pauses for 2.5 s or more, and asks to park 5 s after the outage began. So half a second is left, or
    // more. Tries that no provider answers do not count.
    assert!(between >= Duration::from_millis(400), "{between:?}");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_graph_parks_when_all_its_nodes_wait_for_a_provider() {
    let graph = r#"
name: thinker
start: a
nodes:
  a: {type: llm, prompt: p, next: b}
  b: {type: llm, prompt: q, state_updates: {b: "{{output}}"}, next: e}
  e: {type: end, output: "{{b}}"}
"#;
    let contract = "agent:\n  name: thinker\n  version: 1.0.0\n  provider: {type: graph}\n";
    let up = Arc::new(AtomicBool::new(false));
    let is_up = Arc::clone(&up);
    let server = Server::start(move |_, number| match number {
        0 => Reply::text("first"),
        _ if is_up.load(Ordering::SeqCst) => Reply::text("second"),
        _ => Reply::Error { status: 529, text: "overloaded".to_owned() },
    });
    let server = server.expect("a server");
    let mut scene = Scene::set(&[("agent.yaml", contract), ("graph.yaml", graph)], &variables(&server)).await;
    let input = r#"{"message": "go"}"#;
    let first = scene.attempt(1, input);
    scene.session.grant(&first).await;
    assert!(scene.record_until(u64::MAX).await.is_none(), "it parks");
    assert!(scene.steps().last().is_some_and(|step| step.starts_with("sleep ") && step.contains("overloaded")));
    let requests = server.requests().len();
    let second = Assignment { job: first.job, ..scene.attempt(2, input) };
    scene.session.grant(&second).await;
    assert!(scene.record_until(u64::MAX).await.is_none(), "it parks");
    assert_eq!(server.requests().len(), requests + 1);
    // A job that goes on from this one waits for an outage of its own.
    let other = scene.attempt(1, input);
    scene.session.grant(&other).await;
    assert!(scene.record_until(u64::MAX).await.is_none(), "it parks");
    assert_eq!(scene.steps().iter().filter(|step| step.starts_with("sleep ")).count(), 2);
    up.store(true, Ordering::SeqCst);
    let third = Assignment { job: first.job, ..scene.attempt(3, input) };
    let output = scene.run(&third).await.output(&scene.controller);
    assert!(output.contains("second"), "{output}");
    let firsts = server.requests().iter().filter(|request| request["messages"].to_string().contains("\"p\"")).count();
    assert_eq!(firsts, 1);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_contract_can_say_that_its_jobs_do_not_wait() {
    let (server, _) = server();
    let contract = contract("    outage_wait_seconds: 0\n", "");
    let mut scene = Scene::set(&[("agent.yaml", &contract)], &variables(&server)).await;
    let only = scene.attempt(1, "{}");
    let error = scene.run(&only).await.error();
    assert!(error.contains("status 503, 3 tries") && !error.contains("the job waited"), "{error}");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn the_end_of_the_wait_ends_the_job_and_the_error_says_what_the_call_met() {
    let (server, _) = server();
    for bearer in [false, true] {
        let contract = contract("    outage_wait_seconds: 2\n", "");
        let mut scene = Scene::set(&[("agent.yaml", &contract)], &variables(&server)).await;
        let mut only = Assignment { execution_timeout: Micros::from_secs(20), ..scene.attempt(1, "{}") };
        if bearer {
            only.attachments = Attachments::new([Attachment::Bearer(SecretText::new("Bearer canary"))]);
        }
        let end = scene.run(&only).await;
        let error = end.error();
        assert!(error.starts_with("the server is down (model \"claude-sonnet-4-20250514\" at "), "{error}");
        assert!(error.contains("status 503") && error.contains("; the job waited "), "{error}");
        assert_eq!((&end.metadata()["_error_code"], scene.parked.len()), (&json!("E3201"), 0));
        scene.node.shutdown().await;
    }
}

#[tokio::test]
async fn tries_that_nobody_answers_are_no_work_of_the_job() {
    let try_time = Duration::from_secs(1);
    let answer = move |_: &Value, _| {
        let down = Reply::Error { status: 503, text: "the server is down".to_owned() };
        Reply::After(try_time, Box::new(down))
    };
    let server = Server::start(answer).expect("a server");
    let flow = "agent:\n  name: thinker\n  version: 1.0.0\n  provider: {type: graph}\n";
    let graph = "name: thinker\nstart: a\nnodes:\n  a: {type: llm, prompt: p, next: e}\n  e: {type: end}\n";
    let alone = contract("", "");
    for (files, input) in [
        (vec![("agent.yaml", alone.as_str())], "{}"),
        (vec![("agent.yaml", flow), ("graph.yaml", graph)], r#"{"message": "go"}"#),
    ] {
        let mut scene = Scene::set(&files, &variables(&server)).await;
        let first = scene.attempt(1, input);
        scene.session.grant(&first).await;
        assert!(scene.record_until(u64::MAX).await.is_none(), "it parks");
        let second = Assignment { job: first.job, ..scene.attempt(2, input) };
        let clock = Env::system().clock;
        let began = clock.monotonic();
        scene.session.grant(&second).await;
        assert!(scene.record_until(u64::MAX).await.is_none(), "it parks");
        let (lasted, used) = (clock.monotonic().saturating_sub(began), scene.parked[1].used.as_duration());
        assert!(used + try_time <= lasted, "{used:?} of {lasted:?}");
        scene.node.shutdown().await;
    }
}

#[tokio::test]
async fn a_limit_that_the_submission_states_is_known_in_every_attempt() {
    let (server, _) = server();
    let timeout = Micros::from_secs(20);
    for (attempt, submitted, expected) in [(1, None, 600..=600), (2, Some(timeout), 0..=20)] {
        let mut scene = Scene::set(&[("agent.yaml", &contract("", ""))], &variables(&server)).await;
        let assignment = scene.attempt(attempt, "{}");
        let only = Assignment { execution_timeout: timeout, submitted_timeout: submitted, ..assignment };
        scene.session.grant(&only).await;
        assert!(scene.record_until(u64::MAX).await.is_none(), "it parks");
        let steps = scene.steps();
        let step = steps.iter().find_map(|step| step.strip_prefix("sleep 0+0 ")).expect("a wait");
        let outage: Value = serde_json::from_str(step).expect("JSON");
        let at = |name: &str| outage["outage"][name].as_i64().expect("a time");
        let wait = (at("until_us") - at("since_us")) / 1_000_000;
        assert!(expected.contains(&wait), "{wait} s in attempt {attempt}");
        scene.node.shutdown().await;
    }
}
