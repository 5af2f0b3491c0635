//! Triggers through the HTTP door: calls that senders sign in their own ways, secrets that are replaced, and changes of schedules.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicU64, Ordering};

use hmac::{Hmac, KeyInit, Mac};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::dev::Dev;
use crate::patience::eventually_async;

/// An answer: its status, its header `Warning` and its body.
type Answer = (u16, String, Value);

struct Cluster {
    client: Client,
    dev: Dev,
    _folder: tempfile::TempDir,
}

impl Cluster {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let key = folder.path().join("secrets.key");
        fs::write(&key, "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n").expect("a key");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("permissions");
        let key = key.display().to_string();
        let dev = Dev::start(folder.path(), ["--data-dir", "data", "--secrets-key", key.as_str()]);
        Self { client: Client::builder().no_proxy().build().expect("a client"), dev, _folder: folder }
    }

    async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = self.client.request(method, format!("{}{path}", self.dev.server())).body(body.to_owned());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await.expect("an answer");
        let warning =
            answer.headers().get("warning").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        (answer.status().as_u16(), warning, answer.json().await.unwrap_or_default())
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, &[], &body.to_string()).await
    }

    async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PUT, path, &[], &body.to_string()).await
    }

    async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, &[], "").await.2
    }

    /// Makes a webhook.
    async fn hook(&self, id: &str, members: Value) {
        let mut document = json!({"id": id, "trigger_type": "webhook", "agent_name": "nobody"});
        let all = document.as_object_mut().expect("members");
        all.extend(members.as_object().cloned().unwrap_or_default());
        let (status, _, body) = self.post("/api/triggers", document).await;
        assert_eq!(status, 201, "{body}");
    }

    /// Calls a webhook: the status and the body.
    async fn call(&self, id: &str, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
        let (status, _, body) = self.send(Method::POST, &format!("/api/hooks/{id}"), headers, body).await;
        (status, body)
    }
}

fn sign(secret: &str, signed: &str) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key").chain_update(signed.as_bytes());
    mac.finalize().into_bytes().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}

fn now() -> u64 {
    atlas_env::Env::system().clock.wall().0.unsigned_abs() / 1_000_000
}

#[tokio::test]
async fn a_secret_that_is_replaced_counts_for_a_while() {
    let cluster = Cluster::start();
    let set = async |value: &str| {
        let (status, _, body) = cluster.put("/api/secrets/hook", json!({ "value": value })).await;
        assert_eq!(status, 200, "{body}");
    };
    set("first").await;
    cluster.hook("shared", json!({"hmac": "secret://hook"})).await;
    set("second").await;
    let (old, new, wrong) = (sign("first", "{}"), sign("second", "{}"), sign("third", "{}"));
    for (signature, expected) in [
        (old.clone(), 201),
        (new.clone(), 201),
        (format!("sha256={wrong},sha256={new}"), 201),
        (format!("{old}, {wrong}"), 201),
        (wrong.clone(), 403),
        (String::new(), 403),
    ] {
        let (status, body) = cluster.call("shared", &[("x-atlas-signature", &signature)], "{}").await;
        assert_eq!(status, expected, "{signature}: {body}");
    }
    // A secret that is set anew has no versions from before.
    assert_eq!(cluster.send(Method::DELETE, "/api/objects/secret/hook", &[], "").await.0, 200);
    set("third").await;
    assert_eq!(cluster.call("shared", &[("x-atlas-signature", &new)], "{}").await.0, 403);
    assert_eq!(cluster.call("shared", &[("x-atlas-signature", &wrong)], "{}").await.0, 201);
}

#[tokio::test]
async fn services_sign_in_their_own_ways() {
    let cluster = Cluster::start();
    for scheme in ["github", "slack", "stripe", "shopify", "standard"] {
        cluster.hook(scheme, json!({"scheme": scheme, "webhook_secret": "secret"})).await;
    }
    let stamp = now().to_string();

    let body = r#"{"type":"url_verification","challenge":"3eZb"}"#;
    let signature = format!("v0={}", sign("secret", &format!("v0:{stamp}:{body}")));
    let headers = [("x-slack-signature", signature.as_str()), ("x-slack-request-timestamp", &stamp)];
    assert_eq!(cluster.call("slack", &headers, body).await, (200, json!({"challenge": "3eZb"})));
    assert_eq!(cluster.call("slack", &headers[..1], body).await.0, 403);
    // Slack sends an event again under its id, with another time stamp.
    let body = r#"{"type":"event_callback","event_id":"Ev1"}"#;
    let mut jobs = Vec::new();
    for stamp in [now(), now() - 1].map(|stamp| stamp.to_string()) {
        let signature = format!("v0={}", sign("secret", &format!("v0:{stamp}:{body}")));
        let headers = [("x-slack-signature", signature.as_str()), ("x-slack-request-timestamp", &stamp)];
        let (status, answer) = cluster.call("slack", &headers, body).await;
        assert_eq!(status, 201, "{answer}");
        jobs.push(answer["job_id"].clone());
    }
    assert_eq!(jobs[0], jobs[1]);

    let signature = format!("sha256={}", sign("secret", "{}"));
    let signed = ("x-hub-signature-256", signature.as_str());
    assert_eq!(cluster.call("github", &[signed, ("x-github-event", "ping")], "{}").await, (200, json!({"pong": true})));
    let delivery = ("x-github-delivery", "d1");
    let first = cluster.call("github", &[signed, delivery, ("x-github-event", "push")], "{}").await;
    let again = cluster.call("github", &[signed, delivery, ("x-github-event", "push")], "{}").await;
    assert_eq!((first.0, &first), (201, &again));
    assert_eq!(cluster.call("github", &[("x-atlas-signature", &signature)], "{}").await.0, 403, "another scheme");

    let body = r#"{"id":"evt_1"}"#;
    let signature = format!("t={stamp},v1={}", sign("secret", &format!("{stamp}.{body}")));
    assert_eq!(cluster.call("stripe", &[("stripe-signature", &signature)], body).await.0, 201);
    let old = now() - 1_000;
    let signature = format!("t={old},v1={}", sign("secret", &format!("{old}.{body}")));
    assert_eq!(cluster.call("stripe", &[("stripe-signature", &signature)], body).await.0, 403, "too old");

    let log = cluster.get("/api/triggers/github/deliveries").await;
    let outcomes: Vec<&Value> =
        log["deliveries"].as_array().expect("a list").iter().map(|one| &one["outcome"]).collect();
    assert_eq!(outcomes, ["refused", "repeated", "fired", "greeted"]);
    let started = cluster.get("/api/triggers/slack").await;
    assert_eq!(started["fire_count"], 1, "a greeting starts nothing");
}

#[tokio::test]
async fn a_replay_under_another_name_is_the_same_call() {
    let cluster = Cluster::start();
    cluster.hook("t", json!({"webhook_secret": "secret", "replay_window_seconds": 300})).await;
    let stamp = now().to_string();
    let signature = sign("secret", &format!("{stamp}.{{}}"));
    let mut jobs = Vec::new();
    for delivery in ["d1", "d2"] {
        let headers =
            [("x-atlas-signature", signature.as_str()), ("x-atlas-timestamp", &stamp), ("x-atlas-delivery", delivery)];
        let (status, answer) = cluster.call("t", &headers, "{}").await;
        assert_eq!(status, 201, "{answer}");
        jobs.push(answer["job_id"].clone());
    }
    assert_eq!(jobs[0], jobs[1]);
}

#[tokio::test]
async fn what_an_expression_loses_is_named() {
    let cluster = Cluster::start();
    let cron =
        |expression: &str| json!({"id": "t", "trigger_type": "cron", "agent_name": "a", "cron_expr": expression});
    // As in Atlas for Python, with a warning.
    let (status, warning, _) = cluster.post("/api/triggers", cron("0,60 * * * *")).await;
    assert_eq!(status, 201);
    assert!(warning.contains("'60' in the field minute is outside 0-59"), "{warning}");
    let shown = cluster.get("/api/triggers/t?view=full").await;
    assert_eq!(shown["warnings"].as_array().map(Vec::len), Some(1), "{shown}");
    let (status, _, body) = cluster.post("/api/triggers?strict=true", cron("0,60 * * * *")).await;
    assert_eq!(status, 400);
    assert!(body["error"].to_string().contains("'60' in the field minute is outside 0-59"), "{body}");
    let (status, _, body) = cluster.put("/api/triggers/t?strict=true", json!({"cron_expr": "0 0 * * 1/2"})).await;
    assert!(status == 400 && body["error"].to_string().contains("which is Sunday"), "{body}");
    // What is not changed is not refused.
    assert_eq!(cluster.put("/api/triggers/t?strict=true", json!({"priority": 1})).await.0, 200);
    let object = json!({"spec": {"trigger_type": "cron", "agent_name": "a", "cron_expr": "0 24,1 * * *"}});
    let (status, _, body) = cluster.put("/api/objects/trigger/other", object).await;
    assert!(status == 400 && body.to_string().contains("'24' in the field hour is outside 0-23"), "{body}");
    let (status, _, body) = cluster.post("/api/triggers", cron("0 9 * * MON-FRI")).await;
    assert!(status == 400 && body["error"].to_string().contains("write 1-5"), "{body}");
}

#[tokio::test]
async fn a_change_fires_for_no_time_that_has_passed() {
    let cluster = Cluster::start();
    let cron = json!({"id": "t", "trigger_type": "cron", "agent_name": "nobody", "cron_expr": "0 2 29 2 *"});
    assert_eq!(cluster.post("/api/triggers", cron).await.0, 201);
    // It has fired before.
    assert_eq!(cluster.post("/api/triggers/t/fire", json!({})).await.0, 201);
    for change in [json!({"cron_expr": "0 3 1 1 *"}), json!({"time_zone": "Europe/Rome"}), json!({"enabled": false})] {
        let (status, _, shown) = cluster.put("/api/triggers/t", change).await;
        assert_eq!(status, 200, "{shown}");
        assert!(shown["next_fire"].as_f64().is_some_and(|next| next > now() as f64), "{shown}");
    }
    let (_, _, shown) = cluster.put("/api/triggers/t", json!({"enabled": true})).await;
    assert!(shown["next_fire"].as_f64().is_some_and(|next| next > now() as f64), "{shown}");
    assert_eq!(cluster.get("/api/triggers/t").await["fire_count"], 1);
}

#[tokio::test]
async fn an_interval_that_is_changed_all_the_time_fires() {
    let cluster = Cluster::start();
    let interval = json!({"id": "t", "trigger_type": "interval", "agent_name": "nobody", "interval_seconds": 2});
    assert_eq!(cluster.post("/api/triggers", interval).await.0, 201);
    let edits = AtomicU64::new(0);
    eventually_async("it fires", async || {
        // The leader plans each change within a fraction of a second, so there are many changes in the length of the interval.
        let object = cluster.get("/api/objects/trigger/t").await;
        if object["status"]["planned_revision"] == object["metadata"]["revision"] {
            let edit = edits.fetch_add(1, Ordering::Relaxed);
            let seconds = if edit.is_multiple_of(2) { 2.1 } else { 2.0 };
            let (status, _, shown) = cluster.put("/api/triggers/t", json!({ "interval_seconds": seconds })).await;
            assert_eq!(status, 200, "{shown}");
        }
        match object["status"]["fire_count"].as_u64() {
            Some(1..) => Ok(()),
            _ => Err(object.to_string()),
        }
    })
    .await;
}
