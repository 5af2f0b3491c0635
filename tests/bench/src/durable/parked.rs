//! Durable agents that are parked: what each takes in the memory of the controller, and how long a worker takes to finish many that get a message.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use atlas_env::Env;
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::site::{LOOK_EVERY, PYTHON, Site};
use crate::figures::Row;
use crate::http::{Connection, request};
use crate::process::resident_mib;

/// Agents that are parked when memory is measured first, and then. What grows only at the beginning is no part of the difference.
const FEW: usize = 2_000;
const MANY: usize = 10_000;
/// Programs that wait at a time until their jobs are parked, five seconds later.
const PLACES: usize = 500;
/// Agents that are woken, on a worker with the usual places, and programs of theirs that wait at a time before.
const WOKEN: usize = 1_000;
const WOKEN_PLACES: usize = 100;
/// Connections on which jobs are submitted and messages sent.
const CONNECTIONS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(600);
/// Limits for the memory of a parked agent, and for waking them.
const PARKED_MAX_KIB: f64 = 2.0;
const WAKE_MAX_S: f64 = 5.0;

const WAITER: &str = "waiter";
/// A program that receives a message, as small as one can be.
const SHELL: &str = "echo '{\\\"call\\\": 1, \\\"kind\\\": \\\"receive\\\"}' > /proc/self/fd/$ATLAS_STEP_OUT; read answer < /proc/self/fd/$ATLAS_STEP_IN; echo '{}'";

pub(super) async fn run(env: &Env) -> Result<Vec<Row>> {
    let mut rows = vec![memory(env).await?];
    rows.extend(waking(env).await?);
    Ok(rows)
}

async fn memory(env: &Env) -> Result<Row> {
    let site = Site::start(env, &["--places", &PLACES.to_string()]).await?;
    site.register(WAITER, &format!("{{ type: exec, command: [sh, -c, \"{SHELL}\"] }}"), Vec::new()).await?;
    let mut resident = Vec::new();
    for (more, parked) in [(FEW, FEW), (MANY - FEW, MANY)] {
        submit(&site, WAITER, &json!({}), more).await?;
        until(env, &site, PARKED, parked).await?;
        resident.push(resident_mib(&site.controller)?);
    }
    let kib = (resident[1] - resident[0]) * 1024.0 / (MANY - FEW) as f64;
    let peer = format!("{PARKED_MAX_KIB} KiB");
    Ok(Row::amount("durable_parked", kib, "KiB").value_against(&peer, PARKED_MAX_KIB))
}

/// From the first message until the last job has ended: on a worker that has to start its processes, and on one that has them.
async fn waking(env: &Env) -> Result<Vec<Row>> {
    let places = WOKEN_PLACES.to_string();
    let options = ["--places", &places, "--warm-pool-size", &places];
    let mut site = Site::start(env, &options).await?;
    let mut rows = Vec::new();
    for (round, name) in ["durable_wake_1000_cold", "durable_wake_1000"].into_iter().enumerate() {
        if round > 0 {
            site.worker(&options)?;
        }
        let jobs = submit(&site, PYTHON, &json!({ "receive": true }), WOKEN).await?;
        until(env, &site, PARKED, WOKEN).await?;
        // Another worker, with what is usual.
        site.worker(&[])?;
        if round > 0 {
            warm_up(env, &site).await?;
        }
        let before = counted(&mut site.open().await?, ENDED).await?;
        let begun = env.clock.monotonic();
        try_join_all((0..CONNECTIONS).map(|which| send(&site, &jobs, which))).await?;
        until(env, &site, ENDED, before + WOKEN).await?;
        let took = (env.clock.monotonic() - begun).as_secs_f64();
        rows.push(Row::amount(name, took, "s").value_against("5 s", WAKE_MAX_S));
    }
    Ok(rows)
}

/// Lets the worker start processes of the agent.
async fn warm_up(env: &Env, site: &Site) -> Result<()> {
    let before = counted(&mut site.open().await?, ENDED).await?;
    let jobs = submit(site, PYTHON, &json!({ "steps": 1 }), 20).await?;
    until(env, site, ENDED, before + jobs.len()).await
}

async fn send(site: &Site, jobs: &[String], which: usize) -> Result<()> {
    let mut connection = site.open().await?;
    for id in jobs.iter().skip(which).step_by(CONNECTIONS) {
        connection.send(&request("POST", &format!("/api/jobs/{id}/messages"), br#"{"message": 1}"#)).await?;
    }
    Ok(())
}

/// Submits jobs, all with the same input. Returns their ids.
async fn submit(site: &Site, agent: &str, input: &Value, count: usize) -> Result<Vec<String>> {
    let mut connection = site.open().await?;
    let mut ids = Vec::with_capacity(count);
    while ids.len() < count {
        let jobs = vec![json!({"agent": agent, "input": input}); (count - ids.len()).min(1_000)];
        let batch = request("POST", "/api/jobs:batch?queue_wait=30", json!({ "jobs": jobs }).to_string().as_bytes());
        let answer: Value = serde_json::from_slice(connection.send(&batch).await?)?;
        ensure!(answer["taken"] == jobs.len(), "not all jobs of a batch were taken: {answer}");
        let taken = answer["results"].as_array().context("the results of a batch")?;
        ids.extend(taken.iter().filter_map(|job| Some(job["id"].as_str()?.to_owned())));
    }
    Ok(ids)
}

const PARKED: &str = "atlas_job_waiting_count{atlas_job_reason=\"parked\"}";
const ENDED: &str = "atlas_job_ends_total{atlas_job_outcome=\"completed\"}";

/// Waits until so many jobs are in a state, by a line of the metrics.
async fn until(env: &Env, site: &Site, line: &str, count: usize) -> Result<()> {
    let mut connection = site.open().await?;
    let deadline = env.clock.monotonic() + PATIENCE;
    loop {
        let found = counted(&mut connection, line).await?;
        if found >= count {
            return Ok(());
        }
        ensure!(env.clock.monotonic() < deadline, "only {found} of {count} jobs: {line}");
        env.clock.sleep(10 * LOOK_EVERY).await;
    }
}

/// A number of the page of metrics; zero if it is not there.
async fn counted(connection: &mut Connection, line: &str) -> Result<usize> {
    let page = connection.send(&request("GET", "/metrics", b"")).await?;
    let page = std::str::from_utf8(page)?;
    let value = page.lines().find_map(|found| found.strip_prefix(line));
    Ok(value.map_or(Ok(0.0), |value| value.trim().parse::<f64>())? as usize)
}
