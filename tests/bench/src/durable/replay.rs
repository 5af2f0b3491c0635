//! The replay of a record of a thousand steps, in a new process and in one that is warm.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use atlas_env::Env;
use serde_json::{Value, json};

use super::site::{LOOK_EVERY, PYTHON, Site, completed, submit, times, wait};
use crate::figures::Row;
use crate::http::{Connection, request};

const STEPS: u64 = 1_000;
const ROUNDS: usize = 7;
/// The longest that it should take until the first new step.
const REPLAY_MAX_US: f64 = 150_000.0;

pub(super) async fn run(env: &Env) -> Result<Vec<Row>> {
    let site = Site::start(env, &[]).await?;
    let mut connection = site.open().await?;
    let (mut cold, mut warm, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let replayed = killed(env, &mut connection, &site, round).await?;
        cold.push(replayed.until_new);
        alone.push(replayed.steps);
    }
    for round in 0..ROUNDS {
        let replayed = woken(env, &mut connection, &site, round).await?;
        warm.push(replayed.until_new);
        alone.push(replayed.steps);
    }
    let row = |name, all: Vec<Duration>| {
        let took = all.iter().sum();
        Row::rate(name, 1, all, took).median_against("150 ms", Some(REPLAY_MAX_US))
    };
    Ok(vec![
        row("durable_replay_1000", cold),
        row("durable_replay_1000_warm", warm),
        row("durable_replay_1000_alone", alone),
    ])
}

/// How long a replay took.
struct Replayed {
    /// From the beginning until the first step that was not recorded.
    until_new: Duration,
    /// The recorded steps alone, as the program measures them.
    steps: Duration,
}

/// Kills the agent's process in the step after the thousandth, and resumes the job: from the beginning of the attempt, with the start of
/// its process, until that step runs.
async fn killed(env: &Env, connection: &mut Connection, site: &Site, round: usize) -> Result<Replayed> {
    let input = json!({"steps": STEPS, "marker": marker(site, "killed", round)?});
    let id = submit(connection, PYTHON, &input).await?;
    let job = wait(env, connection, &id).await?;
    ensure!(job["status"] == "failed", "the job should have failed: {job}");
    let retry = request("POST", &format!("/api/jobs/{id}/retry?resume=true"), b"");
    let answer: Value = serde_json::from_slice(connection.send(&retry).await?)?;
    let id = answer["id"].as_str().context("a retry has an id")?.to_owned();
    let job = wait(env, connection, &id).await?;
    let started = job["started_at"].as_f64().context("a job has a start")?;
    replayed(started, &completed(job)?)
}

/// Parks the job after a thousand steps, and sends it the message that it waits for: from the message until the first step after it.
async fn woken(env: &Env, connection: &mut Connection, site: &Site, round: usize) -> Result<Replayed> {
    let marker = marker(site, "woken", round)?;
    std::fs::write(&marker, "")?;
    let id = submit(connection, PYTHON, &json!({"steps": STEPS, "receive": true, "marker": marker})).await?;
    let look = request("GET", &format!("/api/jobs/{id}?view=full"), b"");
    loop {
        let job: Value = serde_json::from_slice(connection.send(&look).await?)?;
        if job["reason"] == "parked" {
            break;
        }
        ensure!(job["status"] != "failed", "the job should park: {job}");
        env.clock.sleep(LOOK_EVERY).await;
    }
    let sent = env.clock.wall().0 as f64 / 1e6;
    connection.send(&request("POST", &format!("/api/jobs/{id}/messages"), br#"{"message": 1}"#)).await?;
    let job = wait(env, connection, &id).await?;
    replayed(sent, &completed(job)?)
}

fn marker(site: &Site, kind: &str, round: usize) -> Result<String> {
    let path = std::path::absolute(site.folder().join(format!("{kind}-{round}")))?;
    Ok(path.display().to_string())
}

fn replayed(begun: f64, output: &Value) -> Result<Replayed> {
    let at = output["at"].as_f64().context("the output has no time")?;
    let until_new = Duration::from_secs_f64((at - begun).max(0.0));
    Ok(Replayed { until_new, steps: times(output)?.iter().sum() })
}
