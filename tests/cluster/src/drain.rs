//! A drain with a deadline: the leader is killed, and the node is still empty in time, with its job running on another
//! node.

use std::fs;

use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::json;

use crate::Agent;
use crate::members::{Member, ask, get};
use crate::patience::eventually_async;
use crate::trio::{leader, trio, worker};

/// Waits until a file exists.
const WAITS: Agent<'static> = Agent {
    name: "waits",
    version: "1.0.0",
    contract: "",
    script: r#"gate=$(sed -n 's/.*"gate": *"\([^"]*\)".*/\1/p')
while [ ! -e "$gate" ]; do sleep 0.05; done
echo '{}'"#,
};

/// The node of a running job, and its attempt.
async fn runs(member: &Member, id: &str) -> Result<(String, u64), String> {
    let job = get(member, &format!("/api/jobs/{id}?view=full")).await?;
    match (job["status"].as_str(), job["node"].as_str(), job["attempt"].as_u64()) {
        (Some("running"), Some(node), Some(attempt)) => Ok((node.to_owned(), attempt)),
        _ => Err(job.to_string()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_deadline_of_a_drain_outlives_the_leader() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let gate = folder.join("gate");
    let mut members = trio(folder, &[&WAITS]).await;
    let first = worker(folder, "w1", &members.each_ref());
    let body = json!({"agent": "waits", "input": {"gate": gate}});
    let job = ask(&members[0], Method::POST, "/api/jobs", body).await.expect("a job");
    let id = job["id"].as_str().expect("an id");
    let (node, attempt) = eventually_async("it runs", async || runs(&members[0], id).await).await;
    assert_eq!((&*node, attempt), ("w1", 1));
    let second = worker(folder, "w2", &members.each_ref());

    let leads = leader(&members).await;
    let other = (leads + 1) % 3;
    let drain = ask(&members[other], Method::POST, "/api/nodes/w1/drain", json!({"deadline_s": 3})).await;
    drain.expect("it drains");
    members[leads].kill();
    let moved = eventually_async("it runs elsewhere", async || match runs(&members[other], id).await? {
        (node, attempt) if node == "w2" => Ok(attempt),
        (node, _) => Err(node),
    });
    assert_eq!(moved.await, 2);
    fs::write(&gate, "").expect("written");
    eventually_async("it completes", async || {
        let job = get(&members[other], &format!("/api/jobs/{id}?view=full")).await?;
        if job["status"] == "completed" { Ok(()) } else { Err(job.to_string()) }
    })
    .await;
    // The drained node can be shut down, because its worker runs nothing.
    assert_eq!(first.end(Signal::SIGTERM), Some(0));
    assert_eq!(second.end(Signal::SIGTERM), Some(0));
}
