//! Limits on starts and on the values of a key, with real programs: they hold across the death of the leader, and other jobs pass.

use reqwest::Method;
use serde_json::json;

use crate::Agent;
use crate::members::{ask, becomes, get, submit_to};
use crate::trio::{leader, trio, worker};

const RARE: Agent<'static> =
    Agent { name: "rare", version: "1.0.0", contract: "  rate: {jobs: 1, seconds: 86400}\n", script: "echo '{}'" };

const SHARED: Agent<'static> = Agent {
    name: "shared",
    version: "1.0.0",
    contract: "  execution_timeout: 3000\n  per_key: {key: /customer, concurrency: 1}\n",
    script: "exec sleep 2000",
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_outlive_the_leader() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut members = trio(folder, &[&RARE, &SHARED]).await;
    let _worker = worker(folder, "w1", &members.each_ref());
    let first = submit_to(&members[0], "rare", json!({})).await;
    becomes(&members[0], &first, "completed", "").await;
    let second = submit_to(&members[0], "rare", json!({})).await;
    becomes(&members[0], &second, "pending", "rate_limit").await;

    let leads = leader(&members).await;
    let other = (leads + 1) % 3;
    members[leads].kill();
    let member = &members[other];
    let a = submit_to(member, "shared", json!({"customer": "a"})).await;
    becomes(member, &a, "running", "").await;
    let waits = submit_to(member, "shared", json!({"customer": "a"})).await;
    let b = submit_to(member, "shared", json!({"customer": "b"})).await;
    becomes(member, &b, "running", "").await;
    becomes(member, &waits, "pending", "key_limit").await;
    becomes(member, &second, "pending", "rate_limit").await;

    let explained = get(member, &format!("/api/jobs/{second}/explain")).await.expect("an answer");
    assert_eq!(explained["starts_if"][0]["changes"][0]["kind"], "rate", "{explained}");
    let explained = get(member, &format!("/api/jobs/{waits}/explain")).await.expect("an answer");
    assert_eq!(explained["starts_if"][0]["changes"][0], json!({"kind": "end", "jobs": [a]}), "{explained}");
    ask(member, Method::POST, &format!("/api/jobs/{a}/cancel"), json!({})).await.expect("it is cancelled");
    becomes(member, &waits, "running", "").await;
}
