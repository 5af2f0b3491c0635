//! What a policy denies, or asks about, does not run by another way: a retry, a call without a token, a second request.

use serde_json::{Value, json};

use crate::approvals::{answer, apply, asks, code, error, eventually, job, question, start, start_with_tokens};

/// An agent whose jobs are tried again.
const RETRIED: &str =
    "agent:\n  name: mail\n  version: 1.1.0\n  retry: {max_retries: 2}\n  requires: {agents: [ghost]}\n";

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_was_asked_about_is_not_retried_by_itself() {
    let server = start().await;
    server.register(RETRIED).await;
    let failed = async || {
        let id = server.submit(r#"{"agent": "mail"}"#).await;
        assert!(error(&server, &id).await.contains("ghost"), "an agent is missing");
        job(&server, &id).await["retried_by"].as_str().unwrap_or_default().to_owned()
    };
    // Without a policy it is tried again, and may find its agent.
    assert_ne!(failed().await, "");
    apply(&server, "base", asks(&json!({"self": true}))).await;
    assert_eq!(failed().await, "");
    server.controller.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_denied_to_a_trigger_is_not_retried() {
    let server = start().await;
    server.register("agent:\n  name: mail\n  version: 1.1.0\n  retry: {max_retries: 2}\n").await;
    apply(&server, "no", json!([{"name": "no", "on": ["submit"], "when": "true", "effect": "deny"}])).await;
    let trigger = json!({"id": "soon", "trigger_type": "interval", "interval_seconds": 1, "agent_name": "mail"});
    assert!(server.post("/api/triggers", &trigger.to_string()).await.status < 300);
    let last = async || {
        let shown = server.get("/api/triggers/soon").await.json();
        shown["last_job_id"].as_str().filter(|job| !job.is_empty()).map(str::to_owned)
    };
    let id = eventually(last).await;
    assert!(error(&server, &id).await.starts_with("E2111"));
    assert_eq!(job(&server, &id).await["retried_by"], "");
    // A person may try again once the policy allows it.
    server.send("DELETE", "/api/triggers/soon", "", b"").await;
    server.send("DELETE", "/api/objects/policy/no", "", b"").await;
    let again = server.post(&format!("/api/jobs/{id}/retry"), "").await;
    assert!(again.status < 300, "{again:?}");
    server.controller.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_has_the_budget_and_waits_for_the_end() {
    let server = start().await;
    apply(&server, "base", asks(&json!({"self": true}))).await;
    let id = server.submit(r#"{"agent": "mail", "budget_usd": "0.25"}"#).await;
    let early = server.post(&format!("/api/jobs/{id}/retry"), "").await;
    assert_eq!(code(&early), (409, "E3005"), "{early:?}");
    assert_eq!(answer(&server, &question(&server, &id).await, "reject").await.status, 200);
    let retried = server.post(&format!("/api/jobs/{id}/retry"), "").await.json();
    let again = job(&server, retried["id"].as_str().expect("an id")).await;
    assert_eq!((&again["reason"], &again["budget_usd"]), (&json!("approval"), &json!(0.25)), "{again}");
    server.controller.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_a_token_is_one_of_whoever_made_the_trigger() {
    let (server, root) = start_with_tokens().await;
    let ask = async |method: &str, path: &str, body: &Value| {
        let headers = format!("authorization: Bearer {root}\r\n");
        server.send(method, path, &headers, body.to_string().as_bytes()).await
    };
    let policy = json!({"spec": {"rules": asks(&json!({}))}});
    assert_eq!(ask("PUT", "/api/objects/policy/base", &policy).await.status, 200);
    let trigger = json!({"id": "hook", "trigger_type": "webhook", "agent_name": "mail"});
    assert!(ask("POST", "/api/triggers", &trigger).await.status < 300);
    let called = server.post("/api/hooks/hook", "{}").await.json();
    let id = called["job_id"].as_str().unwrap_or_else(|| panic!("{called}"));
    let shown = ask("GET", &format!("/api/jobs/{id}?view=full"), &Value::Null).await.json();
    assert_eq!((&shown["principal"], &shown["reason"]), (&json!("root"), &json!("approval")), "{shown}");
    let path = format!("/api/questions/{}/answer", shown["needs_answer"][0].as_str().expect("a question"));
    assert_eq!(code(&ask("POST", &path, &json!({"text": "approve"})).await), (403, "E3042"));
    server.controller.shutdown().await;
}
