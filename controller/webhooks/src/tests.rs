//! Deliveries to local receivers, by a leader of a group of one.

mod node;
mod receiver;

use std::collections::BTreeSet;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use self::node::{Node, Options};
use self::receiver::{Receiver, Request};

/// The names of the objects whose events a receiver got, in order.
async fn names(receiver: &mut Receiver, count: usize) -> Vec<String> {
    let mut names = Vec::new();
    while names.len() < count {
        names.push(receiver.next().await.name());
    }
    names
}

fn verify(request: &Request, secret: &[u8]) -> bool {
    let header = request.header("atlas-signature");
    let (time, signature) = header.strip_prefix("t=").and_then(|rest| rest.split_once(",v1=")).expect("a signature");
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key");
    mac.update(
        [time.as_bytes(), b".", request.header("atlas-delivery").as_bytes(), b".", &request.body].concat().as_slice(),
    );
    let expected: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    expected == signature
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_signed_and_carry_what_happened() {
    let (node, mut receiver) = (Node::start(Options::default()).await, Receiver::start(|_| 204).await);
    node.webhook(
        "ci",
        &json!({ "url": receiver.url("/in?a=b"), "events": ["object.created"], "secret_env": "ATLAS_WEBHOOK_A" }),
    )
    .await;
    let delivering = node.deliver();
    node.namespace("one").await;
    let request = receiver.next().await;
    assert!(verify(&request, b"secret of ATLAS_WEBHOOK_A") && !verify(&request, b"another"));
    assert_eq!(request.line, "POST /in?a=b HTTP/1.1");
    assert_eq!((request.header("atlas-event"), request.header("atlas-attempt")), ("object.created", "1"));
    assert_eq!(request.header("content-type"), "application/json");
    let body = request.json();
    assert_eq!(body["delivery"], request.header("atlas-delivery"));
    assert_eq!(body["webhook"], json!({ "namespace": "default", "name": "ci" }));
    assert_eq!((&body["event"]["kind"], &body["event"]["change"]), (&json!("object"), &json!("created")));
    let status = node.status("ci", |status| status["delivered"] == 1).await;
    assert_eq!((&status["state"], &status["signed"], &status["reason"]), (&json!("ready"), &json!(true), &json!("")));
    delivering.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_fails_and_recovers_gets_every_event_in_order() {
    // Every event is refused twice, and the connection of each fifth request is cut.
    let mut receiver = Receiver::start(|request: &Request| match request.number {
        number if number % 5 == 4 => 0,
        _ if request.header("atlas-attempt") < "3" => 503,
        _ => 200,
    })
    .await;
    let node = Node::start(Options::default()).await;
    node.webhook("ci", &json!({ "url": receiver.url("/"), "events": ["object"] })).await;
    let delivering = node.deliver();
    let wanted: Vec<String> = (0..6).map(|number| format!("n{number}")).collect();
    for name in &wanted {
        node.namespace(name).await;
    }
    let mut accepted = Vec::new();
    let mut ids = BTreeSet::new();
    while accepted.len() < wanted.len() {
        let request = receiver.next().await;
        ids.insert(request.header("atlas-delivery").to_owned());
        if request.answer == 200 {
            accepted.push(request.name());
        }
    }
    assert_eq!(accepted, wanted);
    assert_eq!(ids.len(), wanted.len(), "each event has one id for all its attempts");
    let status = node.status("ci", |status| status["delivered"] == 6).await;
    assert_eq!((&status["state"], &status["dropped"]), (&json!("ready"), &json!(0)));
    delivering.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_leader_continues_where_the_last_one_stopped() {
    let (node, mut receiver) = (Node::start(Options::default()).await, Receiver::start(|_| 200).await);
    node.webhook("ci", &json!({ "url": receiver.url("/"), "events": ["object.created"] })).await;
    let first = node.deliver();
    node.namespace("a").await;
    node.namespace("b").await;
    assert_eq!(names(&mut receiver, 2).await, ["a", "b"]);
    node.status("ci", |status| status["delivered"] == 2).await;
    first.stop().await;
    node.namespace("c").await;
    let second = node.deliver();
    node.namespace("d").await;
    assert_eq!(names(&mut receiver, 2).await, ["c", "d"]);
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_refused_too_often_is_dropped_and_announced() {
    let mut receiver = Receiver::start(|request: &Request| if request.name() == "bad" { 400 } else { 200 }).await;
    let node = Node::start(Options::default()).await;
    let spec = json!({ "url": receiver.url("/"), "events": ["object.created"], "attempts": 3 });
    node.webhook("ci", &spec).await;
    let delivering = node.deliver();
    for name in ["good", "bad", "better"] {
        node.namespace(name).await;
    }
    assert_eq!(names(&mut receiver, 4).await, ["good", "bad", "bad", "bad"]);
    let gap = receiver.next().await;
    assert_eq!(gap.header("atlas-event"), "gap");
    let (good, bad) = (node.event_of("good"), node.event_of("bad"));
    assert_eq!(gap.json()["gap"], json!({ "after": good, "through": bad, "reasons": ["attempts"] }));
    assert_eq!(receiver.next().await.name(), "better");
    let status = node.status("ci", |status| status["delivered"] == 2).await;
    assert_eq!((&status["dropped"], &status["gap"]), (&json!(1), &Value::Null));
    let scrape = node.scrape();
    assert!(scrape.contains("atlas_webhook_deliveries_total{atlas_webhook_result=\"dropped\"} 1"), "{scrape}");
    delivering.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_left_the_history_are_announced() {
    let node = Node::start(Options { events_kept: 2 }).await;
    let mut receiver = Receiver::start(|_| 200).await;
    node.webhook("ci", &json!({ "url": receiver.url("/"), "events": ["object.created"] })).await;
    let through = node.lose_events().await;
    let delivering = node.deliver();
    let gap = receiver.next().await.json()["gap"].clone();
    assert_eq!(gap["reasons"], json!(["retention"]));
    assert!(gap["through"].as_u64().is_some_and(|last| last >= through), "{gap} ends before {through}");
    node.namespace("last").await;
    while receiver.next().await.name() != "last" {}
    let status = node.status("ci", |status| status["missed"] != 0).await;
    assert_eq!(
        status["missed"].as_u64(),
        gap["through"].as_u64().zip(gap["after"].as_u64()).map(|(to, from)| to - from)
    );
    delivering.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_never_answers_holds_up_no_other() {
    let node = Node::start(Options::default()).await;
    let (mut silent, mut quick) = (Receiver::start(|_| Receiver::SILENT).await, Receiver::start(|_| 200).await);
    for (name, receiver) in [("silent", &silent), ("quick", &quick)] {
        node.webhook(name, &json!({ "url": receiver.url("/"), "events": ["object.created"], "timeout_seconds": 60 }))
            .await;
    }
    let delivering = node.deliver();
    let wanted: Vec<String> = (0..20).map(|number| format!("n{number}")).collect();
    for name in &wanted {
        node.namespace(name).await;
    }
    assert_eq!(silent.next().await.name(), "quick", "its first event is that the other webhook was made");
    assert_eq!(names(&mut quick, 20).await, wanted);
    delivering.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_without_the_secret() {
    let (node, mut receiver) = (Node::start(Options::default()).await, Receiver::start(|_| 200).await);
    let spec = |secret: &str| json!({ "url": receiver.url("/"), "events": ["object.created"], "secret_env": secret });
    node.webhook("ci", &spec("ATLAS_WEBHOOK_MISSING")).await;
    let delivering = node.deliver();
    node.namespace("a").await;
    let status = node.status("ci", |status| status["state"] == "blocked").await;
    let reason = status["reason"].as_str().expect("a sentence");
    assert!(reason.contains("no environment variable ATLAS_WEBHOOK_MISSING"), "{reason}");
    // With another variable it goes on from the event at which it stopped.
    node.webhook("ci", &spec("ATLAS_WEBHOOK_A")).await;
    let request = receiver.next().await;
    assert!(request.name() == "a" && verify(&request, b"secret of ATLAS_WEBHOOK_A"));
    delivering.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_sees_its_own_namespace_and_what_it_asked_for() {
    let (node, mut receiver) = (Node::start(Options::default()).await, Receiver::start(|_| 200).await);
    node.webhook_in("team", "ci", &json!({ "url": receiver.url("/"), "events": ["object.deleted", "agent"] })).await;
    let delivering = node.deliver();
    node.webhook("other", &json!({ "url": receiver.url("/"), "events": ["node"], "paused": true })).await;
    node.delete_webhook("default", "other").await;
    node.webhook_in("team", "mine", &json!({ "url": receiver.url("/"), "events": ["node"], "paused": true })).await;
    node.delete_webhook("team", "mine").await;
    let request = receiver.next().await;
    assert_eq!((request.header("atlas-event"), request.name()), ("object.deleted", "mine".to_owned()));
    delivering.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_webhook_keeps_its_place() {
    let (node, mut receiver) = (Node::start(Options::default()).await, Receiver::start(|_| 200).await);
    let spec = |paused| json!({ "url": receiver.url("/"), "events": ["object.created"], "paused": paused });
    node.webhook("ci", &spec(true)).await;
    let delivering = node.deliver();
    node.namespace("a").await;
    node.status("ci", |status| status["state"] == "paused").await;
    node.webhook("ci", &spec(false)).await;
    assert_eq!(receiver.next().await.name(), "a");
    delivering.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_not_followed() {
    let (node, mut receiver) = (Node::start(Options::default()).await, Receiver::start(|_| 302).await);
    node.webhook("ci", &json!({ "url": receiver.url("/"), "events": ["object.created"] })).await;
    let delivering = node.deliver();
    node.namespace("a").await;
    assert_eq!(receiver.next().await.line, "POST / HTTP/1.1");
    let status = node.status("ci", |status| status["state"] == "retrying").await;
    assert_eq!(status["reason"], "the receiver answered 302, and redirects are not followed");
    delivering.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_with_large_payloads_is_shortened() {
    let (node, mut receiver) = (Node::start(Options::default()).await, Receiver::start(|_| 200).await);
    node.webhook("ci", &json!({ "url": receiver.url("/"), "events": ["job.ended"] })).await;
    let delivering = node.deliver();
    node.job(1, 300 << 10).await;
    node.job(2, 10).await;
    let (large, small) = (receiver.next().await.json(), receiver.next().await.json());
    let large = &large["event"];
    assert_eq!(
        (&large["truncated"], &large["job"], &large["new_status"]),
        (&json!(true), &Value::Null, &json!("failed"))
    );
    assert_eq!((&small["event"]["truncated"], &small["event"]["job"]["status"]), (&Value::Null, &json!("failed")));
    delivering.stop().await;
}
