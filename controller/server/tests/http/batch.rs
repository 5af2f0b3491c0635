//! Many jobs in one request.

use atlas_types::Seq;
use serde_json::{Value, json};

use crate::client::{PATIENCE, Reply, Server};

const STRICT: &str =
    "agent:\n  name: strict\n  version: 1.0.0\n  input:\n    schema:\n      type: object\n      required: [n]\n";

/// A server whose queue holds so many jobs.
async fn with_room_for(jobs: u64) -> Server {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start_with(dir, |options| options.rules.jobs_active_max = Some(jobs)).await;
    let handle = server.controller.service().handle();
    while handle.applied().config().jobs_active_max != jobs {
        let next = Seq(handle.applied_seq().0 + 1);
        assert!(handle.wait_applied(next, PATIENCE).await, "the rule was not set");
    }
    server.register(STRICT).await;
    server
}

async fn batch(server: &Server, query: &str, jobs: &Value) -> Reply {
    server.post(&format!("/api/jobs:batch{query}"), &json!({ "jobs": jobs }).to_string()).await
}

fn strict(numbers: std::ops::Range<u32>) -> Value {
    numbers.map(|n| json!({"agent": "strict", "input": {"n": n}, "idempotency_key": format!("k{n}")})).collect()
}

/// The result of each: `id`, or the code of its error.
fn codes(reply: &Reply) -> Vec<String> {
    let code = |result: &Value| match result["id"].as_str() {
        Some(_) => "id".to_owned(),
        None => result["error"]["code"].as_str().expect("a code").to_owned(),
    };
    reply.json()["results"].as_array().unwrap_or_else(|| panic!("no results: {reply:?}")).iter().map(code).collect()
}

fn ids(reply: &Reply) -> Vec<String> {
    let json = reply.json();
    json["results"].as_array().into_iter().flatten().filter_map(|one| one["id"].as_str().map(str::to_owned)).collect()
}

/// The numbers in the inputs of the jobs that wait, in the order of the queue.
async fn queued(server: &Server) -> Vec<u64> {
    let jobs = server.get("/api/jobs?status=pending&limit=1000").await.json();
    let newest_first = jobs.as_array().expect("a list").iter();
    newest_first.rev().map(|job| job["input_data"]["n"].as_u64().expect("a number")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_taken_in_their_order_in_few_entries() {
    let server = with_room_for(1_000).await;
    let before = server.controller.service().handle().applied_seq().0;
    let reply = batch(&server, "", &strict(0..700)).await;
    assert_eq!((reply.status, &reply.json()["taken"]), (201, &json!(700)), "{reply:?}");
    assert_eq!(queued(&server).await, (0..700).collect::<Vec<u64>>());
    let entries = server.controller.service().handle().applied_seq().0 - before;
    assert!(entries < 70, "{entries} entries for 700 jobs");
    for (id, n) in ids(&reply).iter().zip(0_u64..).step_by(99) {
        assert_eq!(server.get(&format!("/api/jobs/{id}")).await.json()["input_data"]["n"], n);
    }
    // A repeat is answered with the same jobs.
    let again = batch(&server, "", &strict(0..700)).await;
    assert_eq!((again.status, ids(&again)), (201, ids(&reply)));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_job_has_an_answer_of_its_own() {
    let server = with_room_for(1_000).await;
    let long = "x".repeat(1 << 20);
    let jobs = json!([
        {"agent": "strict", "input": {"n": 1}},
        {"agent": "strict", "input": {}},
        {"agent": "ghost"},
        {"agent": ""},
        {"agent": "strict", "input": {"n": 2}, "prioirty": 1},
        {"agent": "strict", "input": {"n": long}},
        {"agent": "strict", "input": {"n": 3}, "idempotency_key": "~1"},
        7,
        {"agent": "strict", "input": {"n": 4}, "idempotency_key": "same"},
        {"agent": "strict", "input": {"n": 4}, "idempotency_key": "same"},
        {"agent": "strict", "input": {"n": 5}, "idempotency_key": "same"},
    ]);
    let reply = batch(&server, "?validate=refuse", &jobs).await;
    let expected = ["id", "E1102", "E1101", "E1104", "E1104", "E3006", "E1104", "E1104", "id", "id", "E3004"];
    assert_eq!((reply.status, codes(&reply)), (207, expected.map(str::to_owned).to_vec()), "{reply:?}");
    let json = reply.json();
    assert_eq!((&json["taken"], &json["retry_after_s"]), (&json!(3), &Value::Null));
    assert_eq!(json["results"][1]["error"]["errors"][0]["rule"], "required");
    assert_eq!(json["results"][8], json["results"][9]);
    let misspelt = json["results"][4]["error"]["detail"].as_str().expect("text").to_owned();
    assert_eq!(misspelt, "unknown member \"prioirty\"; did you mean \"priority\"?");
    assert_eq!(queued(&server).await, [1, 4]);
    // Without `validate` what is wrong is a job that fails, as for a single one.
    let accepted = batch(&server, "", &json!([{"agent": "ghost"}, {"agent": "strict"}])).await;
    assert_eq!(accepted.status, 201, "{accepted:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_says_how_far_it_got_and_when_to_come_again() {
    let server = with_room_for(10).await;
    let reply = batch(&server, "", &strict(0..25)).await;
    assert_eq!((reply.status, reply.header("retry-after")), (207, Some("1")), "{reply:?}");
    let json = reply.json();
    assert_eq!((&json["taken"], &json["retry_after_s"]), (&json!(10), &json!(1)));
    assert_eq!(codes(&reply), [vec!["id"; 10], vec!["E3003"; 15]].concat());
    assert_eq!(queued(&server).await, (0..10).collect::<Vec<u64>>());
    let full = batch(&server, "", &strict(25..26)).await;
    assert_eq!((full.status, &full.json()["taken"]), (207, &json!(0)), "{full:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_waits_for_room_takes_all_in_order() {
    let server = with_room_for(10).await;
    let first = batch(&server, "", &strict(0..10)).await;
    let jobs = strict(10..40);
    let rest = batch(&server, "?queue_wait=60", &jobs);
    let mut order = Vec::new();
    let make_room = async {
        // Whatever waits is cancelled, the oldest first, until all have been there.
        while order.len() < 40 {
            for n in queued(&server).await {
                let number = u32::try_from(n).expect("small");
                let job = batch(&server, "", &strict(number..number + 1)).await;
                let id = ids(&job).first().cloned().expect("known by its key");
                server.send("DELETE", &format!("/api/jobs/{id}"), "", b"").await;
                order.push(n);
            }
        }
    };
    let (reply, ()) = tokio::time::timeout(PATIENCE, async { tokio::join!(rest, make_room) }).await.expect("in time");
    assert_eq!((first.status, reply.status, &reply.json()["taken"]), (201, 201, &json!(30)), "{reply:?}");
    assert_eq!(order, (0..40).collect::<Vec<u64>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_the_request_counts_for_each_job_without_one() {
    let server = with_room_for(100).await;
    let body = r#"{"jobs": [{"agent": "strict", "input": {"n": 1}}, {"agent": "strict", "input": {"n": 1}}]}"#;
    let send = async || server.send("POST", "/api/jobs:batch", "idempotency-key: b1\r\n", body.as_bytes()).await;
    let (first, again) = (ids(&send().await), ids(&send().await));
    assert_eq!(first, again);
    assert_ne!(first[0], first[1]);
    let job = server.get(&format!("/api/jobs/{}?view=full", first[1])).await.json();
    assert_eq!(job["request_id"], "b1.1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_breaks_its_form_takes_nothing() {
    let server = with_room_for(2_000).await;
    let many: Vec<Value> = vec![json!({"agent": "strict", "input": {"n": 1}}); 1_001];
    for (query, body, status, says) in [
        ("", String::new(), 400, "EOF"),
        ("", "[]".to_owned(), 400, "an object with `jobs`"),
        ("", "{}".to_owned(), 400, "missing field `jobs`"),
        ("", r#"{"jobs": []}"#.to_owned(), 400, "'jobs' has no element; 1 to 1000 are expected"),
        ("", json!({ "jobs": many }).to_string(), 400, "an array of 1 to 1000 jobs"),
        ("", r#"{"job": [], "jobs": []}"#.to_owned(), 400, "unknown member \"job\"; did you mean \"jobs\"?"),
        ("?quue_wait=1", r#"{"jobs": []}"#.to_owned(), 400, "did you mean \"queue_wait\"?"),
        ("?validate=refused", r#"{"jobs": []}"#.to_owned(), 400, "did you mean \"refuse\"?"),
        ("", " ".repeat((8 << 20) + 1), 413, "the body is larger than 8388608 bytes"),
    ] {
        let reply = server.post(&format!("/api/jobs:batch{query}"), &body).await;
        let json = reply.json();
        assert_eq!(reply.status, status, "{reply:?}");
        assert!(json["detail"].as_str().is_some_and(|detail| detail.contains(says)), "{says}: {reply:?}");
    }
    assert_eq!(queued(&server).await, [0; 0]);
}
