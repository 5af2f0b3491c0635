//! Policies: what they deny at each way to a job, and what is told about it.

use atlas_env::Env;
use serde_json::{Value, json};

use crate::client::{PATIENCE, Reply, Server};

/// A server with an agent that has a secret and asks for the network, and one that does not.
async fn start() -> Server {
    let server = Server::start().await;
    server
        .register(
            "name: mail\nversion: 1.0.0\npermissions: {network: [outbound], secrets: [SMTP], max_memory_mb: 4096}\n",
        )
        .await;
    server.register("name: plain\nversion: 1.0.0\npermissions: {network: [], max_cpu_seconds: 0}\n").await;
    server
}

async fn put(server: &Server, name: &str, spec: Value) -> Reply {
    let path = format!("/api/objects/policy/{name}");
    server.send("PUT", &path, "", json!({ "spec": spec }).to_string().as_bytes()).await
}

async fn apply(server: &Server, name: &str, spec: Value) {
    let reply = put(server, name, spec).await;
    assert_eq!(reply.status, 200, "{reply:?}");
}

fn deny(on: &str, when: &str) -> Value {
    json!({"rules": [{"name": "r", "on": [on], "when": when, "effect": "deny", "message": "ask first"}]})
}

fn code(reply: &Reply) -> (u16, &str) {
    (reply.status, reply.header("atlas-error-code").unwrap_or_default())
}

const DENIED: (u16, &str) = (403, "E2111");

/// Asks until a job or a run has failed, and returns its error.
async fn failed(server: &Server, path: &str) -> String {
    let env = Env::system();
    let ended = async {
        loop {
            let shown = server.get(path).await.json();
            if shown["status"] == "failed" {
                return shown["error"].as_str().unwrap_or_default().to_owned();
            }
            env.clock.sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("it fails in time")
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_decide_on_every_way_to_a_job() {
    let server = start().await;
    let before = server.submit(r#"{"agent": "mail", "input": {"to": "all"}}"#).await;
    apply(&server, "base", deny("submit", "agent.name == 'mail' && (!has(input.to) || input.to == 'all')")).await;

    let to_all = r#"{"agent": "mail", "input": {"to": "all"}}"#;
    let reply = server.post("/api/jobs", to_all).await;
    assert_eq!(code(&reply), DENIED, "{reply:?}");
    let text = reply.json()["error"].as_str().unwrap_or_default().to_owned();
    assert_eq!(text, "denied by the rule \"r\" of the policy \"base\": ask first");
    server.submit(r#"{"agent": "mail", "input": {"to": "ann"}}"#).await;
    server.submit(r#"{"agent": "plain", "input": {"to": "all"}}"#).await;

    // A batch refuses the one job.
    let batch = format!(r#"{{"jobs": [{to_all}, {{"agent": "plain"}}]}}"#);
    let answers = server.post("/api/jobs:batch", &batch).await;
    assert!(answers.body.contains("E2111") && answers.body.contains("job-"), "{answers:?}");

    // A job that was there before can be cancelled, and not run again.
    let cancelled = server.post(&format!("/api/jobs/{before}/cancel"), "").await;
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    let retried = server.post(&format!("/api/jobs/{before}/retry"), "").await;
    assert_eq!(code(&retried), DENIED, "{retried:?}");

    // A trigger: a client that fires it is refused, and its schedule makes a failed job.
    let trigger = json!({"trigger_type": "webhook", "agent_name": "mail"});
    let made = server.post("/api/triggers", &trigger.to_string()).await.json();
    let path = format!("/api/triggers/{}", made["id"].as_str().expect("an id"));
    assert_eq!(code(&server.post(&format!("{path}/fire"), "").await), DENIED);
    let tested = server.post(&format!("{path}/test"), "{}").await.json();
    assert_eq!(
        (&tested["accepted"], tested["error"].as_str().is_some_and(|text| text.contains("ask first"))),
        (&json!(false), true)
    );
    let trigger = json!({"name": "soon", "trigger_type": "interval", "interval_seconds": 1, "agent_name": "mail"});
    let made = server.post("/api/triggers", &trigger.to_string()).await.json();
    let path = format!("/api/triggers/{}", made["id"].as_str().expect("an id"));
    let env = Env::system();
    let fired = async {
        loop {
            let shown = server.get(&path).await.json();
            match shown["last_job_id"].as_str() {
                Some(job) if !job.is_empty() => return job.to_owned(),
                _ => env.clock.sleep(std::time::Duration::from_millis(50)).await,
            }
        }
    };
    let job = tokio::time::timeout(PATIENCE, fired).await.expect("it fires in time");
    let error = failed(&server, &format!("/api/jobs/{job}")).await;
    assert_eq!(error, "E2111: denied by the rule \"r\" of the policy \"base\": ask first");

    // A step of a chain.
    let chain = json!({"chain": {"name": "c", "steps": [{"agent": "mail"}]}, "input": {"to": "all"}});
    let run = server.post("/api/chains", &chain.to_string()).await;
    assert!(run.status < 300, "{run:?}");
    let id = run.json()["id"].as_str().expect("an id").to_owned();
    let path = format!("/api/chains/{id}");
    failed(&server, &path).await;
    let shown = server.get(&path).await.body;
    assert!(shown.contains("E2111") && shown.contains("ask first"), "{shown}");
    server.controller.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deployments_secrets_and_namespaces() {
    let server = start().await;
    apply(&server, "network", deny("deploy", "'outbound' in agent.permissions.network")).await;
    apply(
        &server,
        "no-secrets",
        json!({"allowed_secrets": [], "namespaces": ["default"], "max_memory_mb": 1024, "max_cpu_seconds": 30}),
    )
    .await;

    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(dir.path().join("agent.yaml"), "name: other\nversion: 1.0.0\n").expect("writable");
    std::fs::write(dir.path().join("agent.py"), "").expect("writable");
    let package = atlas_package::pack(dir.path()).expect("packs");
    let reply = server.send("POST", "/api/agents", "", &package.bytes).await;
    assert_eq!(code(&reply), DENIED, "{reply:?}");
    let versions = server.get("/api/agents/other/versions").await;
    assert_eq!(code(&versions), (404, "E1101"), "nothing was registered");

    // A skill runs as an agent, so its contract is judged as well.
    std::fs::write(dir.path().join("skill.yaml"), "skill: {name: half, version: 1.0.0, description: Halves.}\n")
        .expect("writable");
    std::fs::write(dir.path().join("skill.py"), "").expect("writable");
    let skill = atlas_package::pack_skill(dir.path()).expect("packs");
    let reply = server.send("POST", "/api/skills", "", &skill.bytes).await;
    assert_eq!(code(&reply), DENIED, "{reply:?}");
    assert_eq!(server.get("/api/skills/half").await.status, 404);

    // An empty list allows no secret.
    let reply = server.post("/api/jobs", r#"{"agent": "mail"}"#).await;
    assert_eq!(code(&reply), DENIED, "{reply:?}");
    assert!(reply.body.contains("Secret 'SMTP' is not in the allowed secrets whitelist"), "{reply:?}");
    let job = server.submit(r#"{"agent": "plain"}"#).await;

    let left = server.get(&format!("/api/jobs/{job}/policies")).await.json();
    assert_eq!(left["policies"], json!(["network", "no-secrets"]));
    let permissions = &left["permissions"];
    assert_eq!((&permissions["max_memory_mb"], &permissions["max_cpu_seconds"]), (&json!(1024), &json!(30)));

    let why = async |body: Value, query: &str| {
        let reply = server.post(&format!("/api/policies/explain{query}"), &body.to_string()).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    };
    let answer = why(json!({"agent": "mail"}), "").await;
    assert_eq!((&answer["allowed"], &answer["operation"]), (&json!(false), &json!("submit")));
    assert_eq!(answer["permissions"]["max_memory_mb"], 1024);
    let decided = json!([
        {"policy": "network", "rule": null, "allowed": true, "effect": "allow", "why": null},
        {"policy": "no-secrets", "rule": null, "allowed": false, "effect": "deny", "why": "Secret 'SMTP' is not in the allowed secrets whitelist"},
    ]);
    assert_eq!(answer["decisions"], decided);
    let answer = why(json!({"agent": "plain", "operation": "deploy"}), "").await;
    assert_eq!(answer["allowed"], true, "{answer}");

    // The other namespace has the first policy alone.
    let unknown = server.post("/api/policies/explain?namespace=team-a", r#"{"agent": "mail"}"#).await;
    assert_eq!(code(&unknown), (404, "E1101"));
    let shown = server.get(&format!("/api/jobs/{job}/policies?namespace=team-a")).await;
    assert_eq!(shown.status, 404, "a job of another namespace: {shown:?}");

    // What is allowed again is allowed at once.
    apply(&server, "no-secrets", json!({"allowed_secrets": ["SMTP"]})).await;
    server.submit(r#"{"agent": "mail"}"#).await;
    let gone = server.send("DELETE", "/api/objects/policy/network", "", b"").await;
    assert_eq!(gone.status, 200, "{gone:?}");
    for (path, package) in [("/api/agents", &package.bytes), ("/api/skills", &skill.bytes)] {
        let reply = server.send("POST", path, "", package).await;
        assert_eq!(reply.status, 201, "{reply:?}");
    }
    server.controller.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_policies_and_questions_are_refused() {
    let server = start().await;
    let rules = |when: &str| json!({"rules": [{"name": "r", "on": ["submit"], "when": when, "effect": "deny"}]});
    for (spec, told) in [
        (rules("("), "rule \\\"r\\\""),
        (rules("secret == 1"), "secret"),
        (rules(&"(".repeat(2_000)), "rule"),
        (rules(&"x".repeat(3_000)), "is too long"),
        (json!({"rules": [{"name": "r", "on": ["run"], "when": "true", "effect": "deny"}]}), "run"),
        (json!({"rules": [{"name": "r", "on": ["deploy"], "when": "true", "effect": "ask"}]}), "cannot wait"),
        (
            json!({"rules": [{"name": "r", "on": ["submit"], "when": "true", "effect": "ask", "ask": {"who": "bob"}}]}),
            "who",
        ),
        (
            json!({"rules": [{"name": "r", "on": ["submit"], "when": "true", "effect": "deny", "ask": {}}]}),
            "whom to ask",
        ),
        (json!({"allowed_secret": []}), "did you mean \\\"allowed_secrets\\\""),
        (json!({"max_memory_mb": 0}), "max_memory_mb"),
    ] {
        let reply = put(&server, "bad", spec.clone()).await;
        assert_eq!(code(&reply), (400, "E1118"), "{spec}: {reply:?}");
        assert!(reply.body.contains(told), "{spec}: {reply:?}");
    }
    let elsewhere = server.send("PUT", "/api/objects/policy/a?namespace=team-a", "", br#"{"spec": {}}"#).await;
    assert_eq!(code(&elsewhere), (400, "E1118"), "{elsewhere:?}");
    for (body, expected) in [
        ("", (400, "E1104")),
        ("[]", (400, "E1104")),
        ("{}", (400, "E1104")),
        (r#"{"agent": "nobody"}"#, (404, "E1101")),
        (r#"{"agent": "mail", "operation": "run"}"#, (400, "E1104")),
        (r#"{"agent": "mail", "principal": "root"}"#, (400, "E1104")),
        (r#"{"agent": "mail", "priority": "high"}"#, (400, "E1104")),
        (r#"{"agent": "mail", "version": "not a version"}"#, (400, "E1104")),
    ] {
        let reply = server.post("/api/policies/explain", body).await;
        assert_eq!(code(&reply), expected, "{body}: {reply:?}");
    }
    // A rule that cannot be evaluated denies.
    apply(&server, "odd", deny("submit", "input.missing.more == 1")).await;
    let reply = server.post("/api/jobs", r#"{"agent": "plain"}"#).await;
    assert_eq!(code(&reply), DENIED, "{reply:?}");
    assert!(reply.body.contains("cannot be evaluated"), "{reply:?}");
    server.controller.shutdown().await;
}
