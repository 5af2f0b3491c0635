//! Triggers through `kill -9` of leaders: no planned time is lost for long, and none starts two jobs.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::api::Api;
use crate::mcp::register_sleeper;
use crate::members::{Member, ask, get};
use crate::pair::{Controller, worker};
use crate::patience::eventually_async;
use crate::trio::{leader, trio};

/// Number of killed leaders.
const ROUNDS: usize = 2;
/// Firings after each kill.
const FIRINGS: u64 = 8;

/// What a member that runs says about the trigger.
async fn trigger(members: &[Member; 3]) -> Result<Value, String> {
    let mut last = "no member runs".to_owned();
    for member in members.iter().filter(|member| member.runs()) {
        match get(member, "/api/triggers/beat?view=full").await {
            Ok(found) => return Ok(found),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn fired(members: &[Member; 3], least: u64) -> u64 {
    eventually_async("the trigger fires", async || {
        let found = trigger(members).await?;
        match found["fire_count"].as_u64() {
            Some(count) if count >= least => Ok(count),
            _ => Err(found.to_string()),
        }
    })
    .await
}

#[tokio::test]
async fn each_time_of_a_trigger_starts_one_job_whatever_happens_to_leaders() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut members = trio(folder.path(), &[]).await;
    // Jobs of an agent that does not exist fail at once, and are recorded like any other.
    let body = json!({ "id": "beat", "trigger_type": "interval", "interval_seconds": 0.4, "agent_name": "nobody" });
    ask(&members[0], Method::POST, "/api/triggers", body).await.expect("a trigger");
    let mut count = fired(&members, FIRINGS).await;
    for _ in 0..ROUNDS {
        let led = leader(&members).await;
        members[led].kill();
        count = fired(&members, count + FIRINGS).await;
        members[led].restart();
        leader(&members).await;
    }
    let led = leader(&members).await;
    let paused = ask(&members[led], Method::PUT, "/api/triggers/beat", json!({ "enabled": false })).await;
    let paused = paused.expect("paused");
    let jobs = get(&members[led], "/api/jobs?limit=1000").await.expect("jobs");
    let of_trigger = |job: &&Value| job["metadata"]["_trigger_id"] == "beat";
    let started: Vec<&Value> = jobs.as_array().expect("a list").iter().filter(of_trigger).collect();
    assert_eq!(paused["fire_count"].as_u64(), Some(started.len() as u64), "one job for each firing: {paused}");
    assert_eq!(started.first().map(|job| &job["id"]), Some(&paused["last_job_id"]));
    // An interval counts from the firing before, so two jobs of one time would be closer together. A job is created when its entry is
    // made, which is up to a round trip after the firing.
    let mut times: Vec<f64> = started.iter().filter_map(|job| job["created_at"].as_f64()).collect();
    times.sort_by(f64::total_cmp);
    let closest = times.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::MAX, f64::min);
    assert!(closest > 0.2, "two firings are {closest} s apart");
    let ids: BTreeSet<&str> = started.iter().filter_map(|job| job["id"].as_str()).collect();
    assert_eq!(ids.len(), started.len());
    // Nothing fires after the answer to a pause.
    let after = trigger(&members).await.expect("the trigger");
    assert_eq!(after["fire_count"], paused["fire_count"]);
}

/// A trigger whose jobs sleep, and that cancels the last one: each job begins after the end of the one before.
async fn restarts(target: Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let _worker = worker(folder.path(), &controller);
    let api = Api::new(&controller.http.to_string());
    register_sleeper(&api, folder.path()).await;
    let chain = json!({ "spec": { "steps": [{ "agent": "sleeper" }] } });
    let (status, _, stored) = api.try_put("/api/objects/chain/nap", chain).await;
    assert_eq!(status, 200, "{stored}");
    let mut trigger = json!({
        "id": "restart", "trigger_type": "interval", "interval_seconds": 1, "input_data": { "seconds": 600.0 },
        "overlap": "cancel",
    });
    let members = trigger.as_object_mut().expect("an object");
    members.extend(target.as_object().expect("an object").clone());
    api.post("/api/triggers", trigger).await;
    let jobs = eventually_async("two jobs were cancelled for the third", async || {
        let jobs = api.get("/api/jobs?view=full").await;
        let jobs = jobs.as_array().expect("a list").clone();
        let cancelled = jobs.iter().filter(|job| job["status"] == "cancelled").count();
        if cancelled >= 2 { Ok(jobs) } else { Err(json!(jobs).to_string()) }
    })
    .await;
    assert!(jobs.iter().filter(|job| job["status"] != "cancelled").count() <= 1, "{jobs:?}");
    let mut times: Vec<(f64, f64)> = jobs
        .iter()
        .map(|job| (job["created_at"].as_f64().expect("a time"), job["completed_at"].as_f64().unwrap_or(f64::MAX)))
        .collect();
    times.sort_by(|one, other| one.0.total_cmp(&other.0));
    assert!(times.windows(2).all(|pair| pair[1].0 >= pair[0].1), "{times:?}");
}

#[tokio::test]
async fn a_firing_that_cancels_waits_for_the_end_of_the_last_job() {
    restarts(json!({ "agent_name": "sleeper" })).await;
}

#[tokio::test]
async fn a_firing_that_cancels_waits_for_the_end_of_the_jobs_of_a_run() {
    restarts(json!({ "chain_name": "nap" })).await;
}
