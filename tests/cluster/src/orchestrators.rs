//! Orchestrators under load: they are swapped while jobs are submitted and leaders are killed. Each job that is submitted after a swap is decided by
//! the new one, and orchestrators hear of every job that ended.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use atlas_package::pack;
use reqwest::Method;
use serde_json::{Value, json};

use crate::Agent;
use crate::api::Api;
use crate::members::{Member, ask, get};
use crate::patience::eventually_async;
use crate::trio::{leader, trio, worker};

/// Jobs before and after each change.
const JOBS: usize = 10;

const ECHO: Agent<'_> =
    Agent { name: "one", version: "1.0.0", contract: "", script: "cat >/dev/null; echo '{\"by\": \"one\"}'" };
const OTHER: Agent<'_> = Agent { name: "two", script: "cat >/dev/null; echo '{\"by\": \"two\"}'", ..ECHO };

/// Writes and registers an orchestrator with this decision, which notes the jobs that ended in a file.
async fn orchestrator(member: &Member, folder: &Path, name: &str, decision: &str) {
    let dir = folder.join(name);
    fs::create_dir_all(&dir).expect("a folder");
    let heard = folder.join("heard");
    let program = format!(
        r#"
from atlas.orchestrator.protocol import RoutingDecision

class Decides:
    async def route(self, job, registry):
        assert job.status == "pending" and "two" in registry
        return {decision}

    async def on_job_complete(self, job):
        with open({heard:?}, "a") as file:
            file.write(job.id + " completed " + job.agent_name + "\n")

    async def on_job_failed(self, job):
        with open({heard:?}, "a") as file:
            file.write(job.id + " failed " + job.agent_name + "\n")
        raise ValueError("of no consequence")
"#
    );
    fs::write(dir.join("agent.py"), program).expect("written");
    let contract = format!("agent: {{ name: {name}, version: 1.0.0, type: orchestrator }}");
    fs::write(dir.join("agent.yaml"), contract).expect("written");
    Api::new(&member.http.to_string()).register(pack(&dir).expect("a package").bytes).await;
}

/// Makes a request until it succeeds.
async fn insist(member: &Member, method: Method, path: &str, body: Value) -> Value {
    eventually_async(&format!("{method} {path}"), async || ask(member, method.clone(), path, body.clone()).await).await
}

async fn submit(member: &Member) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..JOBS {
        let answer = insist(member, Method::POST, "/api/jobs", json!({"agent": "one", "input": {"text": "x"}})).await;
        ids.push(answer["id"].as_str().expect("an id").to_owned());
    }
    ids
}

/// Waits for the ends of jobs, and checks what happened to them.
async fn ended(member: &Member, ids: &[String], status: &str, agent: &str) {
    for id in ids {
        eventually_async(&format!("{id} is {status}"), async || {
            let job = get(member, &format!("/api/jobs/{id}")).await?;
            if job["status"] == status && job["agent_name"] == agent { Ok(()) } else { Err(job.to_string()) }
        })
        .await;
    }
}

async fn select(member: &Member, name: &str) {
    insist(member, Method::POST, "/api/orchestrator", json!({"name": name})).await;
}

#[tokio::test]
async fn a_swap_under_load_holds_although_the_leader_dies() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut members = trio(folder.path(), &[&ECHO, &OTHER]).await;
    orchestrator(&members[0], folder.path(), "redirects", "RoutingDecision('redirect', agent_name='two', priority=3)")
        .await;
    orchestrator(&members[0], folder.path(), "rejects", "RoutingDecision('reject', metadata={'reason': 'no'})").await;
    let _worker = worker(folder.path(), "w1", &[&members[0], &members[1], &members[2]]);
    let first = leader(&members).await;
    let asked = (first + 1) % 3;

    let allowed = submit(&members[asked]).await;
    ended(&members[asked], &allowed, "completed", "one").await;
    select(&members[asked], "redirects").await;
    let mut told = submit(&members[asked]).await;
    let lost = submit(&members[asked]).await;
    members[first].kill();
    let later = submit(&members[asked]).await;
    told.extend(lost);
    told.extend(later);
    ended(&members[asked], &told, "completed", "two").await;

    select(&members[asked], "rejects").await;
    let rejected = submit(&members[asked]).await;
    ended(&members[asked], &rejected, "failed", "one").await;
    let job = get(&members[asked], &format!("/api/jobs/{}", rejected[0])).await.expect("a job");
    assert_eq!(job["error"], "no", "{job}");

    let wanted: BTreeSet<String> = told.iter().chain(&rejected).cloned().collect();
    eventually_async("orchestrators heard of all jobs", async || {
        let heard = fs::read_to_string(folder.path().join("heard")).unwrap_or_default();
        let heard: BTreeSet<String> =
            heard.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
        let missing: Vec<_> = wanted.difference(&heard).collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("{missing:?}")) }
    })
    .await;
    let jobs = get(&members[asked], "/api/jobs?limit=1000").await.expect("a list");
    let others =
        jobs.as_array().expect("a list").iter().filter(|job| job["agent_name"] != "one" && job["agent_name"] != "two");
    assert_eq!(others.count(), 0, "the calls of orchestrators are in no list");

    select(&members[asked], "").await;
    let allowed = submit(&members[asked]).await;
    ended(&members[asked], &allowed, "completed", "one").await;
}
