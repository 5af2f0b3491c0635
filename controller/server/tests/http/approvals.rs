//! Rules of policies that ask: what waits, who answers, and how it ends, at each way to a job.

use std::time::Duration;

use atlas_env::Env;
use serde_json::{Value, json};

use crate::client::{PATIENCE, Reply, Server};

pub(crate) async fn start() -> Server {
    let server = Server::start().await;
    server.register("name: mail\nversion: 1.0.0\n").await;
    server.register("name: plain\nversion: 1.0.0\n").await;
    server
}

/// A controller with tokens and the agent `mail`, and its root token.
pub(crate) async fn start_with_tokens() -> (Server, String) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (file, root) = (dir.path().join("root.token"), format!("atl_root_{}", "1f".repeat(32)));
    std::fs::write(&file, &root).expect("writable");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("private");
    let server = Server::start_with(dir, |options| {
        (options.auth, options.root_token_file) = (atlas_controller::Auth::Tokens, Some(file));
    })
    .await;
    let package = {
        let dir = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(dir.path().join("agent.yaml"), "name: mail\nversion: 1.0.0\n").expect("writable");
        std::fs::write(dir.path().join("agent.py"), "").expect("writable");
        atlas_package::pack(dir.path()).expect("packs").bytes
    };
    let headers = format!("authorization: Bearer {root}\r\n");
    assert_eq!(server.send("POST", "/api/agents", &headers, &package).await.status, 201);
    (server, root)
}

pub(crate) async fn apply(server: &Server, name: &str, rules: Value) {
    let body = json!({"spec": {"rules": rules}}).to_string();
    let reply = server.send("PUT", &format!("/api/objects/policy/{name}"), "", body.as_bytes()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
}

/// Rules that ask about jobs of `mail`. Without authentication everybody is one principal, so it has to be allowed to answer itself.
pub(crate) fn asks(ask: &Value) -> Value {
    let when = "agent.name == 'mail'";
    json!([{"name": "mails", "on": ["submit"], "when": when, "effect": "ask", "message": "mails leave the house", "ask": ask}])
}

pub(crate) fn code(reply: &Reply) -> (u16, &str) {
    (reply.status, reply.header("atlas-error-code").unwrap_or_default())
}

pub(crate) async fn job(server: &Server, id: &str) -> Value {
    server.get(&format!("/api/jobs/{id}?view=full")).await.json()
}

/// The open question of a job.
pub(crate) async fn question(server: &Server, job: &str) -> Value {
    let open = server.get(&format!("/api/questions?job={job}")).await.json();
    assert_eq!(open.as_array().map(Vec::len), Some(1), "{open}");
    open[0].clone()
}

pub(crate) async fn answer(server: &Server, question: &Value, text: &str) -> Reply {
    let id = question["id"].as_str().expect("an id");
    server.post(&format!("/api/questions/{id}/answer"), &json!({ "text": text }).to_string()).await
}

/// Looks until something is there.
pub(crate) async fn eventually<T>(look: impl AsyncFn() -> Option<T>) -> T {
    let env = Env::system();
    let found = async {
        loop {
            match look().await {
                Some(found) => return found,
                None => env.clock.sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("it comes in time")
}

/// The error of a job that fails.
pub(crate) async fn error(server: &Server, id: &str) -> String {
    let failed = async || Some(job(server, id).await).filter(|job| job["status"] == "failed");
    eventually(failed).await["error"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_waits_for_its_approval() {
    let server = start().await;
    apply(&server, "base", asks(&json!({"self": true}))).await;
    server.submit(r#"{"agent": "plain"}"#).await;
    let id = server.submit(r#"{"agent": "mail", "input": {"to": "all"}, "priority": 3}"#).await;
    let shown = job(&server, &id).await;
    assert_eq!((&shown["status"], &shown["reason"]), (&json!("pending"), &json!("approval")), "{shown}");
    let waits = "waiting for an approval, demanded by the rule \"mails\" of the policy \"base\"";
    assert_eq!(shown["waiting_for"], waits);
    let asked = question(&server, &id).await;
    assert_eq!(
        asked["prompt"],
        "May local run mail 1.0.0 with priority 3? The rule \"mails\" of the policy \"base\" asks.\nmails leave the house"
    );
    let who = "whoever has the right questions.answer";
    let approval = json!({"policy": "base", "rule": "mails", "role": "", "self": true, "who": who});
    assert_eq!(
        (&asked["kind"], &asked["step"], &asked["approval"]),
        (&json!("approve"), &json!(0), &approval),
        "{asked}"
    );
    let seconds = asked["deadline"].as_f64().unwrap_or_default() - asked["asked_at"].as_f64().unwrap_or_default();
    assert_eq!(seconds, 86_400.0);
    let expected =
        json!([{"policy": "base", "rule": "mails", "question": asked["id"], "agent": "mail", "approved_by": ""}]);
    assert_eq!((&shown["approvals"], &shown["needs_answer"]), (&expected, &json!([asked["id"]])));
    assert_eq!(shown["needs_approval"], json!([{"question": asked["id"], "job": id, "who": who}]));
    let why = server.get(&format!("/api/jobs/{id}/explain")).await.json();
    assert!(why.to_string().contains("it is approved"), "{why}");

    for text in ["yes", "Approve", ""] {
        assert_eq!(code(&answer(&server, &asked, text).await), (400, "E3043"), "{text}");
    }
    let answered = answer(&server, &asked, "approve").await;
    assert_eq!(answered.json()["answered_by"], "local", "{answered:?}");
    assert_eq!(code(&answer(&server, &asked, "reject").await), (409, "E3041"));
    let shown = job(&server, &id).await;
    assert_eq!((&shown["status"], &shown["reason"]), (&json!("pending"), &json!("no_node")), "{shown}");
    assert_eq!(shown["approvals"][0]["approved_by"], "local");
    server.controller.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_a_cancel_and_the_time_end_it() {
    let server = start().await;
    apply(&server, "base", asks(&json!({}))).await;
    let id = server.submit(r#"{"agent": "mail"}"#).await;
    let asked = question(&server, &id).await;
    assert_eq!(code(&answer(&server, &asked, "approve").await), (403, "E3042"), "not by who submitted it");
    let cancelled = server.post(&format!("/api/jobs/{id}/cancel"), "").await;
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    assert_eq!(code(&answer(&server, &asked, "approve").await).0, 403);
    assert_eq!(job(&server, &id).await["status"], "cancelled");

    apply(&server, "base", asks(&json!({"self": true}))).await;
    let id = server.submit(r#"{"agent": "mail"}"#).await;
    let answered = answer(&server, &question(&server, &id).await, "reject: not on a Friday").await;
    assert_eq!(answered.status, 200, "{answered:?}");
    let rejected = "E2112: local rejected the job, which needs an approval by the rule \"mails\" of the policy \"base\": not on a Friday";
    assert_eq!(error(&server, &id).await, rejected);
    assert_eq!(job(&server, &id).await["failure_kind"], "rejected");
    // A retry is a new job, about which the policy asks again.
    let retried = server.post(&format!("/api/jobs/{id}/retry"), "").await;
    let again = retried.json()["id"].as_str().unwrap_or_else(|| panic!("{retried:?}")).to_owned();
    assert_eq!(job(&server, &again).await["reason"], "approval");
    let asked = question(&server, &again).await;

    apply(&server, "base", asks(&json!({"timeout_seconds": 1}))).await;
    let late = server.submit(r#"{"agent": "mail"}"#).await;
    let told = "E2113: nobody approved the job within 1 s, which the rule \"mails\" of the policy \"base\" demands";
    assert_eq!(error(&server, &late).await, told);
    // What a policy asked before it changed holds.
    assert_eq!(answer(&server, &asked, "approve").await.status, 200);
    assert_eq!(job(&server, &again).await["reason"], "no_node");
    server.controller.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_of_an_approved_job_is_not_asked_about_again() {
    let server = start().await;
    apply(&server, "base", asks(&json!({"self": true}))).await;
    let id = server.submit(r#"{"agent": "mail"}"#).await;
    assert_eq!(answer(&server, &question(&server, &id).await, "approve").await.status, 200);
    assert_eq!(server.post(&format!("/api/jobs/{id}/cancel"), "").await.status, 200);
    let retried = server.post(&format!("/api/jobs/{id}/retry"), "").await.json();
    let again = job(&server, retried["id"].as_str().expect("an id")).await;
    assert_eq!((&again["reason"], &again["original_job_id"]), (&json!("no_node"), &json!(id)), "{again}");

    // Another rule asks for its own approval.
    let mut rules = asks(&json!({"self": true}));
    rules[0]["name"] = "all mails".into();
    apply(&server, "base", rules).await;
    let resumed = server.post(&format!("/api/jobs/{id}/retry?resume=true"), "").await;
    assert_eq!(code(&resumed), (403, "E2114"), "{resumed:?}");
    let retried = server.post(&format!("/api/jobs/{id}/retry"), "").await.json();
    assert_eq!(job(&server, retried["id"].as_str().expect("an id")).await["reason"], "approval");
    server.controller.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_a_job_asks() {
    let server = start().await;
    apply(&server, "base", asks(&json!({"self": true}))).await;
    // A batch has both. A repeated request finds the first job, with its one question.
    let batch = r#"{"jobs": [{"agent": "mail"}, {"agent": "plain"}]}"#;
    let answers = server.post("/api/jobs:batch", batch).await.json();
    let waiting = server.get("/api/questions").await.json();
    assert!(waiting.as_array().is_some_and(|all| all.len() == 1), "{answers} {waiting}");
    let key = "idempotency-key: once\r\n";
    let first = server.send("POST", "/api/jobs", key, br#"{"agent": "mail"}"#).await.json();
    assert_eq!(server.send("POST", "/api/jobs", key, br#"{"agent": "mail"}"#).await.json()["id"], first["id"]);
    question(&server, first["id"].as_str().expect("an id")).await;

    // The schedule of a trigger, and a trigger that is fired by hand.
    let trigger = json!({"trigger_type": "webhook", "agent_name": "mail"});
    let made = server.post("/api/triggers", &trigger.to_string()).await.json();
    let path = format!("/api/triggers/{}", made["id"].as_str().expect("an id"));
    assert_eq!(server.post(&format!("{path}/test"), "{}").await.json()["accepted"], true);
    let fired = server.post(&format!("{path}/fire"), "").await;
    assert!(fired.status < 300, "{fired:?}");
    let trigger = json!({"name": "soon", "trigger_type": "interval", "interval_seconds": 1, "agent_name": "mail"});
    let made = server.post("/api/triggers", &trigger.to_string()).await.json();
    for path in [path, format!("/api/triggers/{}", made["id"].as_str().expect("an id"))] {
        let last = async || {
            let shown = server.get(&path).await.json();
            shown["last_job_id"].as_str().filter(|job| !job.is_empty()).map(str::to_owned)
        };
        let id = eventually(last).await;
        assert_eq!(job(&server, &id).await["reason"], "approval");
        server.send("DELETE", &path, "", b"").await;
    }

    // A step of a chain, which ends when its approval is refused.
    let chain = json!({"chain": {"name": "c", "steps": [{"agent": "mail"}]}, "input": {}});
    let run = server.post("/api/chains", &chain.to_string()).await.json();
    let path = format!("/api/chains/{}", run["id"].as_str().expect("an id"));
    let step = async || {
        let shown = server.get(&format!("{path}?view=full")).await.json();
        shown["step_jobs"][0]["job_id"].as_str().map(str::to_owned)
    };
    let step = eventually(step).await;
    let waits = async || Some(job(&server, &step).await).filter(|job| job["reason"] == "approval");
    eventually(waits).await;
    assert_eq!(answer(&server, &question(&server, &step).await, "reject").await.status, 200);
    let failed = async || Some(server.get(&path).await.json()).filter(|run| run["status"] == "failed");
    let failed = eventually(failed).await;
    assert!(failed.to_string().contains("E2112"), "{failed}");
    server.controller.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_counts_before_a_question_and_a_question_before_an_allowance() {
    let server = start().await;
    apply(&server, "a", asks(&json!({"self": true}))).await;
    apply(&server, "b", json!([{"name": "yes", "on": ["submit"], "when": "true", "effect": "allow"}])).await;
    let why = async || server.post("/api/policies/explain", r#"{"agent": "mail"}"#).await.json();
    let told = why().await;
    assert_eq!((&told["allowed"], &told["effect"]), (&json!(true), &json!("ask")), "{told}");
    assert_eq!((&told["decisions"][0]["effect"], &told["decisions"][1]["effect"]), (&json!("ask"), &json!("allow")));

    // Two policies that ask want two approvals.
    apply(&server, "c", asks(&json!({"self": true}))).await;
    let id = server.submit(r#"{"agent": "mail"}"#).await;
    let open = server.get(&format!("/api/questions?job={id}")).await.json();
    for (asked, reason) in [(&open[0], "approval"), (&open[1], "no_node")] {
        assert_eq!(answer(&server, asked, "approve").await.status, 200);
        assert_eq!(job(&server, &id).await["reason"], reason);
    }

    apply(&server, "d", json!([{"name": "no", "on": ["submit"], "when": "true", "effect": "deny"}])).await;
    let reply = server.post("/api/jobs", r#"{"agent": "mail"}"#).await;
    assert_eq!(code(&reply), (403, "E2111"), "{reply:?}");
    assert_eq!(why().await["effect"], "deny");
    // In one policy the first rule that holds decides, whatever its effect.
    let mut rules = asks(&json!({"self": true}));
    rules
        .as_array_mut()
        .expect("rules")
        .insert(0, json!({"name": "first", "on": ["submit"], "when": "true", "effect": "allow"}));
    apply(&server, "a", rules).await;
    for name in ["c", "d"] {
        server.send("DELETE", &format!("/api/objects/policy/{name}"), "", b"").await;
    }
    assert_eq!(why().await["effect"], "allow");
    server.controller.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_others_with_the_role_answer() {
    let (server, root) = start_with_tokens().await;
    let ask = async |token: &str, method: &str, path: &str, body: &Value| {
        let headers = format!("authorization: Bearer {token}\r\n");
        server.send(method, path, &headers, body.to_string().as_bytes()).await
    };
    let role = json!({"spec": {"rights": ["jobs.read", "questions.answer"]}});
    assert_eq!(ask(&root, "PUT", "/api/objects/role/approver", &role).await.status, 200);
    let mut tokens = Vec::new();
    let people = [
        ("ann", "submitter", None),
        ("bob", "approver", Some("default")),
        ("carl", "operator", None),
        ("dora", "approver", Some("other")),
    ];
    for (name, role, namespace) in people {
        let made = ask(&root, "POST", "/api/auth/tokens", &json!({ "name": name })).await;
        assert!(made.status < 300, "{made:?}");
        tokens.push(made.json()["token"].as_str().expect("a token").to_owned());
        let mut grants = vec![json!({ "role": role })];
        if let Some(namespace) = namespace {
            grants[0]["namespace"] = namespace.into();
        }
        if name == "dora" {
            grants.push(json!({"role": "operator", "namespace": "default"}));
        }
        let bound =
            ask(&root, "PUT", &format!("/api/objects/binding/{name}"), &json!({"spec": {"grants": grants}})).await;
        assert_eq!(bound.status, 200, "{bound:?}");
    }
    let [ann, bob, carl, dora] = tokens.as_slice() else { panic!("{tokens:?}") };
    let policy = json!({"spec": {"rules": asks(&json!({"role": "approver"}))}});
    assert_eq!(ask(&root, "PUT", "/api/objects/policy/base", &policy).await.status, 200);

    let id = ask(ann, "POST", "/api/jobs", &json!({"agent": "mail"})).await.json()["id"].clone();
    let path = format!("/api/questions?job={}", id.as_str().expect("an id"));
    let open = ask(bob, "GET", &path, &Value::Null).await.json();
    let path = format!("/api/questions/{}/answer", open[0]["id"].as_str().unwrap_or_else(|| panic!("{open}")));
    let yes = json!({"text": "approve"});
    // All three have the right to answer questions. Carl has another role, Dora has the role elsewhere, and Ann submitted the job.
    for (token, refused) in [(carl, (403, "E3042")), (dora, (403, "E3042")), (ann, (403, "E3042"))] {
        let heard = ask(token, "POST", &path, &yes).await;
        assert_eq!(code(&heard), refused, "{heard:?}");
    }
    let heard = ask(bob, "POST", &path, &yes).await;
    assert_eq!(heard.json()["answered_by"], "bob", "{heard:?}");
    // The audit has the question and the decision.
    let audited = ask(&root, "GET", "/api/audit?limit=1000", &Value::Null).await.body;
    for record in [" asks policy/base", "answerQuestion", " approve"] {
        assert!(audited.contains(record), "{record}: {audited}");
    }
    server.controller.shutdown().await;
}
