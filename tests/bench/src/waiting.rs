//! Measures a controller with a million jobs that wait: their memory, lists of them, and how long it takes to serve again after `kill -9`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use atlas_env::Env;
use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::cluster;
use crate::figures::Row;
use crate::http::{Connection, request};
use crate::process::{Running, bytes_below, free_address, program, resident_mib};

const JOBS: usize = 1_000_000;
/// Jobs of one batch, the most that the endpoint takes, and clients that submit batches.
const BATCH: usize = 1_000;
const CLIENTS: usize = 4;
/// Limits for a restart, and for the memory of a job.
const RESTART_MAX_S: f64 = 3.0;
const JOB_MAX_KIB: f64 = 1.0;
/// Lists of each kind, and the longest that one should take.
const LISTS: usize = 20;
const LIST_MAX_US: f64 = 50_000.0;

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let folder = tempfile::tempdir_in(".")?;
        let http = free_address()?;
        let controller = start(env, folder.path(), &http)?;
        cluster::register(http.parse()?, "noop", "{ type: exec, command: [\"@noop\"] }", Vec::new()).await?;
        let empty = resident_mib(&controller)?;
        let begun = env.clock.monotonic();
        try_join_all((0..CLIENTS).map(|_| submit(&http))).await?;
        let took = (env.clock.monotonic() - begun).as_secs_f64();
        let each = |mib: f64| mib * 1024.0 / JOBS as f64;
        let mut rows = vec![
            Row::amount("waiting_submit", JOBS as f64 / took, "1/s"),
            Row::amount("waiting_job", each(resident_mib(&controller)? - empty), "KiB")
                .value_against(&format!("{JOB_MAX_KIB} KiB"), JOB_MAX_KIB),
        ];
        for (name, query) in [("newest", ""), ("agent", "&agent=noop"), ("status", "&status=pending")] {
            rows.push(list(env, &http, name, query).await?);
        }
        drop(controller);

        let begun = env.clock.monotonic();
        let controller = start(env, folder.path(), &http)?;
        let found = Connection::open(http.parse()?).await?.send(&newest(1, "")).await?.len();
        let took = (env.clock.monotonic() - begun).as_secs_f64();
        ensure!(found > 2, "the jobs are gone");
        rows.push(Row::amount("waiting_restart", took, "s").value_against("3 s", RESTART_MAX_S));
        rows.push(Row::amount("waiting_job_restarted", each(resident_mib(&controller)? - empty), "KiB"));
        for (name, part) in [("waiting_log", "controller/raft/log"), ("waiting_snapshot", "controller/raft/snapshots")]
        {
            let bytes = bytes_below(&folder.path().join(part), "")?;
            rows.push(Row::amount(name, bytes as f64 / f64::from(1 << 20), "MiB"));
        }
        Ok(rows)
    })
}

/// A controller without a node, so that all jobs wait.
fn start(env: &Env, folder: &Path, http: &str) -> Result<Running> {
    let mut controller = Command::new(program("atlas-controller")?);
    controller.arg("--data-dir").arg(folder.join("controller")).args(["--http-listen", http]);
    controller.args(["--worker-listen", "127.0.0.1:0", "--peer-listen", "127.0.0.1:0"]);
    controller.args(["--queue-max-size", &(2 * JOBS).to_string()]);
    let mut controller = Running::start(&mut controller, |line| line.contains("controller started"))?;
    controller.drain(env);
    Ok(controller)
}

/// Submits the batches of one client, one after the other.
async fn submit(http: &str) -> Result<()> {
    let jobs = vec![json!({"agent": "noop", "input": {}}); BATCH];
    let batch = request("POST", "/api/jobs:batch?queue_wait=30", json!({ "jobs": jobs }).to_string().as_bytes());
    let mut connection = Connection::open(http.parse()?).await?;
    for _ in 0..JOBS / BATCH / CLIENTS {
        let answer: Value = serde_json::from_slice(connection.send(&batch).await?)?;
        ensure!(answer["taken"] == BATCH, "not all jobs of a batch were taken: {answer}");
    }
    Ok(())
}

fn newest(limit: usize, query: &str) -> Vec<u8> {
    request("GET", &format!("/api/jobs?limit={limit}{query}"), b"")
}

/// Asks for the first fifty jobs of a list, several times.
async fn list(env: &Env, http: &str, name: &str, query: &str) -> Result<Row> {
    let mut connection = Connection::open(http.parse()?).await?;
    let asked = newest(50, query);
    let mut latencies = Vec::with_capacity(LISTS);
    for _ in 0..LISTS {
        let begun = env.clock.monotonic();
        connection.send(&asked).await?;
        latencies.push(env.clock.monotonic() - begun);
    }
    let took: Duration = latencies.iter().sum();
    Ok(Row::rate(&format!("waiting_list_{name}"), 1, latencies, took).median_against("50 ms", Some(LIST_MAX_US)))
}
