//! Measures tasks that do nothing, submitted in batches: Atlas, and in the same run HyperQueue and Ray by the clients of their packages.
//!
//! `ATLAS_BENCH_PYTHON` names a Python that has the packages `hyperqueue` and `ray`. Without it, or for one that is missing, there is no
//! row and no ratio.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use atlas_env::Env;
use serde_json::json;

use crate::cluster;
use crate::figures::Row;
use crate::http::{Connection, request};

/// Jobs of one batch, the most that the endpoint takes.
const BATCH: usize = 1_000;
/// Batches of a round. The queue holds all its jobs.
const BATCHES: usize = 8;
/// Rounds that are measured, after one that is not.
const ROUNDS: usize = 5;
/// How many jobs run at once, and with how many cores the others run tasks.
const PLACES: u32 = 256;
const CORES: usize = 2;
/// Tasks of the other systems.
const TASKS: usize = 5_000;
/// Limit for one task, in microseconds.
const TASK_US: f64 = 35.0;
/// How long a round may take, and how often its end is looked for.
const ROUND_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(1);

const PEERS: &str = include_str!("tasks/peers.py");

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let runtime = atlas_dev::runtime()?;
    let cluster = runtime.block_on(cluster::start(env, PLACES))?;
    let http = cluster.http();
    runtime.block_on(cluster::register(http, "noop", "{ type: exec, command: [\"@noop\"] }", Vec::new()))?;
    let client = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut rounds = client.block_on(async {
        let mut rounds = Vec::new();
        for _ in 0..=ROUNDS {
            rounds.push(round(env, http).await?);
        }
        anyhow::Ok(rounds.split_off(1))
    })?;
    runtime.block_on(cluster.shutdown());
    rounds.sort_unstable();
    let micros = rounds[ROUNDS / 2].as_secs_f64() * 1e6 / (BATCH * BATCHES) as f64;
    let row = Row::amount("task_in_batch", micros, "µs");
    let mut rows = vec![row.clone().value_against(&format!("{TASK_US} µs"), TASK_US)];
    for (name, seconds) in peers()? {
        let other = seconds * 1e6;
        rows.push(Row::amount(&format!("task_{name}"), other, "µs"));
        rows.push(row.clone().value_against(&format!("{name}'s tasks"), other));
    }
    Ok(rows)
}

/// From the first byte of the first batch until no job waits or runs.
async fn round(env: &Env, http: SocketAddr) -> Result<Duration> {
    let jobs = vec![json!({"agent": "noop", "input": {}}); BATCH];
    let batch = request("POST", "/api/jobs:batch?queue_wait=30", json!({ "jobs": jobs }).to_string().as_bytes());
    let mut connection = Connection::open(http).await?;
    let begun = env.clock.monotonic();
    for _ in 0..BATCHES {
        let answer: serde_json::Value = serde_json::from_slice(connection.send(&batch).await?)?;
        ensure!(answer["taken"] == BATCH, "not all jobs of a batch were taken: {answer}");
    }
    for status in ["pending", "running"] {
        let look = request("GET", &format!("/api/jobs?status={status}&limit=1"), b"");
        while connection.send(&look).await? != b"[]" {
            ensure!(env.clock.monotonic() - begun < ROUND_MAX, "the jobs of a round did not end");
            env.clock.sleep(LOOK_EVERY).await;
        }
    }
    Ok(env.clock.monotonic() - begun)
}

/// The other systems that are installed, with their seconds for each task.
fn peers() -> Result<Vec<(String, f64)>> {
    let Some(python) = std::env::var_os("ATLAS_BENCH_PYTHON") else { return Ok(Vec::new()) };
    let mut command = Command::new(&python);
    command.args(["-c", PEERS]).args([TASKS, CORES].map(|number| number.to_string())).stderr(Stdio::null());
    let output = command.output().with_context(|| format!("could not start {}", python.display()))?;
    ensure!(output.status.success(), "the tasks of HyperQueue and Ray failed: {}", output.status);
    let lines = String::from_utf8(output.stdout)?;
    // HyperQueue prints tables as well.
    let named = lines.lines().filter_map(|line| line.split_once(' '));
    let named = named.filter(|(name, _)| ["hyperqueue", "ray"].contains(name));
    named.map(|(name, seconds)| Ok((name.to_owned(), seconds.parse()?))).collect()
}
