//! Labels that an operator adds to a node: a job that waits for such a label runs immediately, and the labels survive a
//! kill of the leader and of the worker.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};

use crate::Agent;
use crate::members::{Member, ask, get};
use crate::patience::eventually_async;
use crate::process::Process;
use crate::program::program;
use crate::trio::{leader, trio, worker_command};

/// Runs only in zone b.
const ZONED: Agent<'static> =
    Agent { name: "zoned", version: "1.0.0", contract: "  hardware: { node_labels: { zone: b } }", script: "cat" };

/// A worker with a zone label.
fn worker_in(zone: &str, folder: &Path, name: &str, members: &[Member; 3]) -> Process {
    let mut command = worker_command(program("atlas-worker"), folder, name, &members.each_ref());
    Process::start(command.args(["--label", &format!("zone={zone}")]))
}

/// Waits until a node is ready in epoch `since` or later; returns its zone and its labels from operators.
async fn node(member: &Member, name: &str, since: u64) -> (String, Value) {
    let node = eventually_async("the node is up", async || {
        let node = get(member, &format!("/api/nodes/{name}")).await?;
        let is_up = node["health"] == "ready" && node["epoch"].as_u64() >= Some(since);
        if is_up { Ok(node) } else { Err(node.to_string()) }
    });
    let mut node = node.await;
    (node["labels"]["zone"].as_str().expect("a zone").to_owned(), node["operator_labels"].take())
}

async fn submit(member: &Member) -> String {
    let job = ask(member, Method::POST, "/api/jobs", json!({"agent": "zoned", "input": {}})).await.expect("a job");
    job["id"].as_str().expect("an id").to_owned()
}

async fn ran_on(member: &Member, id: &str) -> String {
    let ran = eventually_async("it completes", async || {
        let job = get(member, &format!("/api/jobs/{id}?view=full")).await?;
        match (job["status"].as_str(), job["node"].as_str()) {
            (Some("completed"), Some(node)) => Ok(node.to_owned()),
            _ => Err(job.to_string()),
        }
    });
    ran.await
}

async fn label(member: &Member, labels: Value) -> Result<Value, String> {
    ask(member, Method::POST, "/api/nodes/w1/labels", labels).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_waits_for_a_label_runs_where_it_is_given() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut members = trio(folder, &[&ZONED]).await;
    let first = worker_in("a", folder, "w1", &members);
    // The only node in the zone is cordoned: the job is feasible, but has to wait.
    let _second = worker_in("b", folder, "w2", &members);
    node(&members[0], "w2", 1).await;
    ask(&members[0], Method::POST, "/api/nodes/w2/cordon", json!({})).await.expect("cordoned");
    assert_eq!(node(&members[0], "w1", 1).await, ("a".to_owned(), json!({})));
    let id = submit(&members[0]).await;
    let job = get(&members[1], &format!("/api/jobs/{id}?view=full")).await.expect("a job");
    assert!(job["status"] == "pending" && job.to_string().contains("without the label"), "{job}");

    let leads = leader(&members).await;
    let other = (leads + 1) % 3;
    label(&members[other], json!({"set": {"zone": "b", "rack": "7"}})).await.expect("labelled");
    assert_eq!(ran_on(&members[other], &id).await, "w1");

    members[leads].kill();
    first.kill();
    let _first = worker_in("a", folder, "w1", &members);
    let given = ("b".to_owned(), json!({"zone": "b", "rack": "7"}));
    assert_eq!(node(&members[other], "w1", 2).await, given, "another leader, another epoch");
    let id = submit(&members[other]).await;
    assert_eq!(ran_on(&members[other], &id).await, "w1");

    label(&members[other], json!({"remove": ["zone"]})).await.expect("taken away");
    assert_eq!(node(&members[other], "w1", 2).await, ("a".to_owned(), json!({"rack": "7"})));
    let refused = label(&members[other], json!({"remove": ["zone", "rack"]})).await.expect_err("the worker tells it");
    assert!(refused.starts_with("409 Conflict E5003"), "{refused}");
    assert_eq!(node(&members[other], "w1", 2).await.1, json!({"rack": "7"}), "a refusal changes nothing");
}
