//! What clients of Atlas for Python rely on.

use serde_json::{Value, json};

use crate::client::{PATIENCE, Server};

const GREETER: &str = "agent:\n  name: greeter\n  version: 1.2.0\n  description: Greets\n  capabilities: [greeting]\n  input:\n    schema:\n      type: object\n      properties: {name: {type: string}}\n      required: [name]\n      additionalProperties: false\n";

/// Members whose values differ from run to run.
fn masked(mut job: Value) -> Value {
    for member in ["id", "created_at", "started_at", "completed_at"] {
        if job[member] != json!(0.0) {
            job[member] = json!("…");
        }
    }
    job
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_version() {
    let server = Server::start().await;
    let reply = server.get("/api/health").await;
    assert_eq!(reply.header("content-type"), Some("application/json; charset=utf-8"));
    assert_eq!(reply.json(), json!({"status": "ok", "pending": 0, "running": 0, "capacity_remaining": 1000}));
    assert_eq!(server.get("/api/metrics").await.json()["agents"], json!({}));
    assert_eq!(server.get("/api/version").await.json()["mode"], "production");
    assert_eq!(server.get("/api/ready").await.status, 200);
    assert_eq!(reply.header("atlas-consistency"), None);
    assert!(reply.header("x-atlas-index").is_some());
    assert_eq!(server.get("/api/health?consistency=stale").await.header("atlas-consistency"), Some("stale"));
    assert!(server.get("/metrics").await.body.ends_with("# EOF\n"));
    server.controller.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_an_unknown_agent_is_accepted_and_fails() {
    let server = Server::start().await;
    let id = server.submit(r#"{"agent": "ghöst", "input": {"ä": 1}, "priority": "7"}"#).await;
    let reply = server.get(&format!("/api/jobs/{id}/wait?timeout=60")).await;
    assert!(reply.body.contains("gh\\u00f6st"), "{reply:?}");
    let expected = json!({
        "id": "…", "agent_name": "ghöst", "status": "failed", "input_data": {"ä": 1}, "output_data": null,
        "error": "Pool error: Agent not found or no implementation: ghöst", "priority": 7,
        "created_at": "…", "started_at": "…", "completed_at": "…", "warmup_ms": 0.0, "execution_ms": 0.0,
        "retry_count": 0, "original_job_id": "", "metadata": {},
    });
    assert_eq!(masked(reply.json()), expected);
    // Any beginning of the id that is unique names it, with or without its prefix.
    assert_eq!(masked(server.get(&format!("/api/jobs/{}", &id[4..12])).await.json()), expected);
    assert_eq!(server.get("/api/jobs?agent=gh%C3%B6st&status=failed").await.json().as_array().map(Vec::len), Some(1));
    let refused = server.post("/api/jobs?validate=refuse", r#"{"agent": "ghost"}"#).await;
    assert_eq!((refused.status, refused.header("atlas-error-code")), (404, Some("E1101")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_breaks_the_contract_fails_or_is_refused() {
    let server = Server::start().await;
    server.register(GREETER).await;
    let job = server.post("/api/jobs?wait=10", r#"{"agent": "greeter", "input": {"nme": 5}}"#).await;
    assert_eq!(job.status, 200);
    assert_eq!(
        job.json()["error"],
        "Input validation: 'name' is a required property; Additional properties are not allowed ('nme' was unexpected)"
    );
    let headers = "accept: application/problem+json\r\n";
    let body = br#"{"agent": "greeter", "input": {"nme": 5}}"#;
    let refused = server.send("POST", "/api/jobs?validate=refuse", headers, body).await;
    let problem = refused.json();
    assert_eq!((problem["code"].as_str(), problem["status"].as_u64()), (Some("E1102"), Some(400)));
    assert_eq!(problem["errors"][1]["pointer"], "/nme");
    assert_eq!(problem["errors"][1]["message"], "not allowed here; did you mean \"name\"?");
    assert_eq!(problem["hint"], "show the contract: atlasctl agent schema greeter");
    let agent = server.get("/api/agents/greeter").await.json();
    assert_eq!(agent["input_schema"]["required"], json!(["name"]));
    assert_eq!(server.get("/api/agents").await.json()[0]["description"], "Greets");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_agent_lacks_others_fails_or_is_refused() {
    let server = Server::start().await;
    server.register(GREETER).await;
    let chain = "agent:\n  name: chain\n  version: 1.0.0\n  requires:\n    agents: [ghost, greeter, {name: greeter, version: ^2.0.0}]\n";
    server.register(chain).await;
    let job = server.post("/api/jobs?wait=10&view=full", r#"{"agent": "chain"}"#).await.json();
    let expected = "Missing agent dependencies: ghost, greeter ^2.0.0. Install with: atlas registry pull <name>";
    assert_eq!((job["status"].as_str(), job["error"].as_str()), (Some("failed"), Some(expected)));
    let refused = server.post("/api/jobs?validate=refuse", r#"{"agent": "chain"}"#).await;
    assert_eq!((refused.status, refused.header("atlas-error-code")), (404, Some("E1112")));
    server.register(&chain.replace("1.0.0", "1.1.0").replace("ghost, ", "").replace("^2.0.0", "~1.2.0")).await;
    let id = server.submit(r#"{"agent": "chain"}"#).await;
    assert_eq!(server.get(&format!("/api/jobs/{id}")).await.json()["status"], "pending");
    // A retry asks again: they are missing still, and then they are there.
    let retry = format!("/api/jobs/{}/retry", job["id"].as_str().expect("an id"));
    let retried = async || {
        let id = server.post(&retry, "").await.json()["id"].as_str().expect("an id").to_owned();
        server.get(&format!("/api/jobs/{id}")).await.json()
    };
    assert_eq!(retried().await["error"], expected);
    server.register("name: ghost\nversion: 1.0.0\n").await;
    server.register(&GREETER.replace("1.2.0", "2.0.0")).await;
    assert_eq!(retried().await["status"], "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pending_job_is_listed_waited_for_and_cancelled() {
    let server = Server::start().await;
    server.register(GREETER).await;
    let first = server.submit(r#"{"agent": "greeter", "input": {"name": "Ada"}}"#).await;
    let second = server.submit(r#"{"agent": "greeter", "input": {"name": "Bob"}}"#).await;
    let list = server.get("/api/jobs?limit=1").await.json();
    assert_eq!(list[0]["id"], second.as_str(), "newest first");
    let waited = server.get(&format!("/api/jobs/{first}/wait?timeout=0.01&view=full")).await.json();
    assert_eq!((waited["status"].as_str(), waited["reason"].as_str()), (Some("pending"), Some("no_node")));
    assert_eq!(waited["waiting_for"], "waiting for a worker: none is registered");
    let cancelled = server.send("DELETE", &format!("/api/jobs/{first}"), "", b"").await;
    assert_eq!(cancelled.json(), json!({"cancelled": true}));
    let again = server.send("DELETE", &format!("/api/jobs/{first}"), "", b"").await;
    assert_eq!(again.json(), json!({"cancelled": false}));
    let unknown = server.send("DELETE", "/api/jobs/job-0000000000000000", "", b"").await;
    assert_eq!(unknown.json(), json!({"cancelled": false}));
    let health = server.get("/api/health").await.json();
    assert_eq!((health["pending"].as_u64(), health["capacity_remaining"].as_u64()), (Some(1), Some(999)));
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_of_agents() {
    let server = Server::start().await;
    assert_eq!(server.get("/api/metrics/ghost").await.json(), json!({"error": "No metrics for agent: ghost"}));
    server.post("/api/jobs?wait=10", r#"{"agent": "ghost"}"#).await;
    let figures = server.get("/api/metrics").await.json();
    let agent = json!({
        "jobs_by_status": {"pending": 0, "running": 0, "completed": 0, "failed": 1, "cancelled": 0},
        "total_jobs": 1, "throughput_per_min": 1, "latency_p50_ms": 0.0, "latency_p95_ms": 0.0, "latency_p99_ms": 0.0,
        "error_rate": 1.0, "warm_hit_rate": 0.0, "total_retries": 0,
    });
    assert_eq!(figures["agents"]["ghost"], agent);
    assert_eq!(server.get("/api/metrics/ghost").await.json(), agent);
    assert_eq!(figures["global"]["error_rate"], 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_and_members_are_listed_in_pages() {
    let server = Server::start().await;
    let count = async |path: &str| server.get(path).await.json().as_array().expect("a list").len();
    assert_eq!(count("/api/cluster/members").await, 1);
    assert_eq!(count("/api/cluster/members?limit=1").await, 1);
    assert_eq!(count("/api/cluster/members?offset=1").await, 0);
    assert_eq!(count("/api/nodes?limit=5&offset=0").await, 0);
    for path in ["/api/nodes?offset=-1", "/api/cluster/members?offset=x", "/api/cluster/members?limit=0"] {
        assert_eq!(server.get(path).await.status, 400, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_idempotency_key_gets_the_first_answer() {
    let server = Server::start().await;
    let headers = "idempotency-key: k1\r\n";
    let first = server.send("POST", "/api/jobs", headers, br#"{"agent": "ghost"}"#).await.json();
    let again = server.send("POST", "/api/jobs", headers, br#"{"agent": "ghost"}"#).await.json();
    assert_eq!(first, again);
    let other = server.send("POST", "/api/jobs", headers, br#"{"agent": "ghost", "priority": 1}"#).await;
    assert_eq!((other.status, other.header("atlas-error-code")), (409, Some("E3004")));
    // The first answer is repeated, also if the agent has changed.
    server.register(GREETER).await;
    let headers = "idempotency-key: k2\r\n";
    let body = br#"{"agent": "greeter", "input": {"name": "Ada"}}"#;
    let first = server.send("POST", "/api/jobs?validate=refuse", headers, body).await.json();
    assert_eq!(server.send("DELETE", "/api/agents/greeter/versions/1.2.0", "", b"").await.status, 200);
    assert_eq!(server.send("POST", "/api/jobs?validate=refuse", headers, body).await.json(), first);
    assert_eq!(server.send("POST", "/api/jobs?validate=refuse", "", body).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_job_is_run_again_once_a_key() {
    let server = Server::start().await;
    let ghost = server.submit(r#"{"agent": "ghost"}"#).await;
    assert_eq!(server.post(&format!("/api/jobs/{ghost}/retry"), "").await.header("atlas-error-code"), Some("E1101"));
    server.register(GREETER).await;
    let id = server.submit(r#"{"agent": "greeter", "input": {}}"#).await;
    let retry = format!("/api/jobs/{id}/retry");
    let first = server.send("POST", &retry, "idempotency-key: r1\r\n", b"").await;
    assert_eq!(first.status, 201, "{first:?}");
    let again = server.send("POST", &retry, "idempotency-key: r1\r\n", b"").await;
    assert_eq!(first.json(), again.json());
    let job = server.get(&format!("/api/jobs/{}", first.json()["id"].as_str().expect("an id"))).await.json();
    assert_eq!(job["original_job_id"], id.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_left_the_state_are_still_listed_and_found() {
    let server = Server::start().await;
    let mut ids = Vec::new();
    for _ in 0..1_200 {
        ids.push(server.submit(r#"{"agent": "ghost"}"#).await);
    }
    // The state keeps the last thousand once history has confirmed the others.
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while server.controller.service().handle().applied().jobs_total() > 1_100 {
        assert!(tokio::time::Instant::now() < deadline, "the state was not pruned");
        server.submit(r#"{"agent": "ghost"}"#).await;
    }
    assert_eq!(server.get(&format!("/api/jobs/{}", ids[0])).await.json()["status"], "failed");
    assert_eq!(server.get(&format!("/api/jobs/{}", &ids[0][4..])).await.status, 200);
    let newest = server.get("/api/jobs?limit=1000").await.json();
    let offset = server.get("/api/jobs?limit=1000&offset=1000").await.json();
    let all: Vec<&str> =
        newest.as_array().into_iter().chain(offset.as_array()).flatten().filter_map(|job| job["id"].as_str()).collect();
    let listed: Vec<&str> = all.iter().rev().copied().take(ids.len()).collect();
    assert_eq!(listed, ids, "newest first, each once");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_there_after_a_restart() {
    let server = Server::start().await;
    server.register(GREETER).await;
    let failed = server.submit(r#"{"agent": "ghost"}"#).await;
    let pending = server.submit(r#"{"agent": "greeter", "input": {"name": "Ada"}}"#).await;
    let Server { controller, dir } = server;
    controller.shutdown().await;
    let server = Server::start_in(dir).await;
    assert_eq!(server.get(&format!("/api/jobs/{failed}")).await.json()["status"], "failed");
    assert_eq!(server.get(&format!("/api/jobs/{pending}")).await.json()["status"], "pending");
    assert_eq!(server.get("/api/jobs").await.json().as_array().map(Vec::len), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_for_a_join_token_gets_the_same_token() {
    let server = Server::start().await;
    let ask = async |key: &str, body: &str| {
        let key = if key.is_empty() { String::new() } else { format!("idempotency-key: {key}\r\n") };
        server.send("POST", "/api/cluster/join-tokens", &key, body.as_bytes()).await
    };
    let token = |reply: &crate::client::Reply| reply.json()["token"].as_str().expect("a token").to_owned();
    let first = ask("one", r#"{"kind": "controller", "expires_s": 60}"#).await;
    assert_eq!(first.status, 201, "{first:?}");
    let again = ask("one", r#"{"kind": "controller", "expires_s": 60}"#).await;
    assert_eq!((again.status, token(&again)), (201, token(&first)));
    assert!(again.json()["expires_at"].as_f64() <= first.json()["expires_at"].as_f64().map(|at| at + 1.0), "{again:?}");
    assert_ne!(token(&ask("two", r#"{"kind": "controller", "expires_s": 60}"#).await), token(&first));
    assert_ne!(token(&ask("", "{}").await), token(&ask("", "{}").await));
    let other = ask("one", r#"{"kind": "controller", "expires_s": 90}"#).await;
    assert_eq!((other.status, other.header("atlas-error-code")), (409, Some("E3004")));
}
