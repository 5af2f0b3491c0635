//! Jobs that continue a conversation.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Reply, Server};

fn agent(name: &str, provider: &str) -> String {
    let input = "{schema: {type: object, properties: {message: {type: string}}, required: [message]}}";
    format!("agent:\n  name: {name}\n  version: 1.0.0\n  provider: {provider}\n  input: {input}\n")
}

async fn start() -> Server {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start_with(folder, |options| options.limits.turn_wait_max = Duration::from_millis(200)).await;
    for (name, provider) in
        [("clerk", "normal"), ("memo", "{type: normal, session: work}"), ("flow", "graph"), ("plain", "python")]
    {
        server.register(&agent(name, provider)).await;
    }
    server
}

fn code(reply: &Reply) -> (u16, &str) {
    (reply.status, reply.header("atlas-error-code").unwrap_or_default())
}

async fn say(server: &Server, agent: &str, conversation: &str, message: &str) -> Reply {
    let body = json!({"agent": agent, "input": {"message": message}, "conversation": conversation});
    server.post("/api/jobs", &body.to_string()).await
}

async fn job(server: &Server, submitted: &Reply) -> Value {
    assert_eq!(submitted.status, 201, "{submitted:?}");
    server.get(&format!("/api/jobs/{}?view=full", submitted.json()["id"].as_str().expect("an id"))).await.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_turn_of_a_conversation_is_answered_at_a_time() {
    let server = start().await;
    let first = job(&server, &say(&server, "clerk", "trip", "a").await).await;
    assert_eq!(first["input_data"], json!({"message": "a"}));
    assert_eq!(first["metadata"]["_conversation"], "trip");

    // There is no worker, so the turn does not end by itself.
    let busy = say(&server, "clerk", "trip", "b").await;
    assert_eq!(code(&busy), (429, "E1120"), "{busy:?}");
    let shown = server.get("/api/conversations/trip").await.json();
    assert_eq!((&shown["running_job"], &shown["agent"]), (&first["id"], &json!("clerk")), "{shown}");
    // Others have their own turn: other conversations, those that are not kept, and those of another namespace.
    job(&server, &say(&server, "clerk", "other", "b").await).await;
    let fresh = job(&server, &say(&server, "clerk", "temp", "b").await).await;
    assert_eq!(fresh["metadata"], json!({}), "{fresh}");
    let foreign = r#"{"agent": "nobody", "input": {"message": "a"}, "conversation": "trip"}"#;
    let foreign = server.post("/api/jobs?namespace=team", foreign).await;
    assert_eq!(code(&foreign), (404, "E1101"), "{foreign:?}");
    assert_eq!(server.get("/api/conversations/trip?namespace=team").await.status, 404);

    // A turn without an answer leaves the conversation as it was.
    let path = format!("/api/jobs/{}/cancel", first["id"].as_str().expect("an id"));
    assert_eq!(server.post(&path, "").await.status, 200);
    let next = job(&server, &say(&server, "clerk", "trip", "c").await).await;
    assert_eq!(next["input_data"], json!({"message": "c"}));
    server.controller.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_is_the_same_turn() {
    let server = start().await;
    let send = async |message: &str, conversation: &str| {
        let body = json!({"agent": "clerk", "input": {"message": message}, "conversation": conversation});
        server.send("POST", "/api/jobs", "idempotency-key: k1\r\n", body.to_string().as_bytes()).await
    };
    let (first, again) = (send("a", "trip").await, send("a", "trip").await);
    assert_eq!(first.json()["id"], again.json()["id"], "{again:?}");
    for other in [send("b", "trip").await, send("a", "other").await] {
        assert_eq!(code(&other), (409, "E3004"), "{other:?}");
    }
    server.controller.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_with_a_session_continue_it() {
    let server = start().await;
    let send = async |agent: &str, input: Value| {
        server.post("/api/jobs", &json!({"agent": agent, "input": input}).to_string()).await
    };
    let first = job(&server, &send("memo", json!({"message": "a"})).await).await;
    assert_eq!(first["metadata"]["_conversation"], "session:memo:work", "{first}");
    let busy = send("memo", json!({"message": "b"})).await;
    assert_eq!(code(&busy), (429, "E1120"), "{busy:?}");
    // The submitter can name another one, or none.
    let named = job(&server, &say(&server, "memo", "trip", "b").await).await;
    assert_eq!(named["metadata"]["_conversation"], "trip");
    let fresh = job(&server, &say(&server, "memo", "temp", "b").await).await;
    assert_eq!(fresh["metadata"], json!({}));
    // What is no message, and what is to run later, is a job as any other.
    let wrong = job(&server, &send("memo", json!({"text": "b"})).await).await;
    assert_eq!(wrong["status"], "failed", "{wrong}");
    let later = json!({"agent": "memo", "input": {"message": "b"}, "at": 253_402_300_000_u64});
    let later = job(&server, &server.post("/api/jobs", &later.to_string()).await).await;
    assert_eq!(later["metadata"], json!({}));
    // Jobs of a batch run at the same time.
    let batch = json!({"jobs": [{"agent": "memo", "input": {"message": "b"}}]});
    let batch = server.post("/api/jobs:batch", &batch.to_string()).await;
    let id = batch.json()["results"][0]["id"].as_str().unwrap_or_else(|| panic!("{batch:?}")).to_owned();
    assert_eq!(server.get(&format!("/api/jobs/{id}?view=full")).await.json()["metadata"], json!({}));
    server.controller.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_cannot_be_turns_are_refused() {
    let server = start().await;
    let long = "x".repeat(254);
    for (agent, conversation, told) in [
        ("clerk", json!("a/b"), "object name"),
        ("clerk", json!(""), "object name"),
        ("clerk", json!(long), "object name"),
        ("clerk", json!(5), "'conversation' must be a string"),
        ("flow", json!("trip"), "flow takes no conversation: a graph manages its own state"),
        ("plain", json!("trip"), "plain takes no conversation: its input has no member for messages"),
    ] {
        let body = json!({"agent": agent, "input": {"message": "a"}, "conversation": conversation});
        let refused = server.post("/api/jobs", &body.to_string()).await;
        assert_eq!(code(&refused), (400, "E1104"), "{refused:?}");
        assert!(refused.body.contains(told), "{told}: {refused:?}");
    }
    for body in [
        json!({"agent": "clerk", "input": {"text": "a"}, "conversation": "trip"}),
        json!({"agent": "clerk", "input": [], "conversation": "trip"}),
        json!({"agent": "clerk", "input": {"message": "a"}, "conversation": "trip", "at": 253_402_300_000_u64}),
    ] {
        assert_eq!(code(&server.post("/api/jobs", &body.to_string()).await), (400, "E1104"), "{body}");
    }
    job(&server, &say(&server, "clerk", "trip", "a").await).await;
    let foreign = say(&server, "memo", "trip", "a").await;
    assert_eq!(code(&foreign), (400, "E1104"), "{foreign:?}");
    assert!(foreign.body.contains("the conversation trip is with clerk, not memo"), "{foreign:?}");
    let batch = json!({"jobs": [{"agent": "clerk", "input": {"message": "a"}, "conversation": "trip"}]});
    let batch = server.post("/api/jobs:batch", &batch.to_string()).await;
    assert!(batch.body.contains("conversation"), "{batch:?}");
    assert_eq!(batch.json()["results"][0].get("id"), None, "{batch:?}");
    // Without a conversation, a graph is a job as any other.
    job(&server, &say(&server, "flow", "temp", "a").await).await;
    server.controller.shutdown().await;
}
