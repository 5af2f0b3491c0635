//! Whole jobs: submitted over HTTP, granted, run, completed and read, all durable and with history on.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use atlas_env::Env;
use atlas_package::PackFile;
use futures::future::try_join_all;
use serde_json::json;

use crate::cluster;
use crate::figures::{Row, median};
use crate::http::{Connection, request};

/// How many jobs are in flight at once.
const CONCURRENCIES: [usize; 4] = [1, 16, 64, 256];

/// Not counted: connections, warm slots and the log's segments come into being.
const WARM_UP: Duration = Duration::from_millis(1500);

/// Counted.
const MEASURED: Duration = Duration::from_secs(5);

/// Stands in the object of a job that went well.
const COMPLETED: &[u8] = b"\"status\":\"completed\"";

const PYTHON_AGENT: &str = "\
from atlas.runtime.base import AgentBase


class Nothing(AgentBase):
    async def execute(self, input_data):
        return {}
";

const EXEC_AGENT: &str = "#!/bin/sh\nwhile read -r line; do printf '{\"output\": {}}\\n'; done\n";

pub(crate) fn run(env: &Env, rows: &[Row]) -> Result<Vec<Row>> {
    let runtime = atlas_dev::runtime()?;
    let places = CONCURRENCIES.into_iter().max().unwrap_or(1) as u32;
    let cluster = runtime.block_on(cluster::start(env, places))?;
    let http = cluster.http();
    let mut measured = Vec::new();
    runtime.block_on(cluster::register(http, "noop", "{ type: exec, command: [\"@noop\"] }", Vec::new()))?;
    for concurrency in CONCURRENCIES {
        let row = load(env, http, "jobs_noop", "noop", concurrency)?;
        measured.push(if concurrency == 1 { row.median_against("its limit", limit(rows)) } else { row });
    }
    let noop = median(&measured, "jobs_noop", 1);
    let pipe = median(rows, "limit_pipe", 1);
    let file = |path: &str, text: &str, executable| {
        vec![PackFile { path: path.to_owned(), bytes: text.as_bytes().to_vec(), executable }]
    };
    let warm_exec = "{ type: exec, command: [\"./agent.sh\"], mode: warm }";
    runtime.block_on(cluster::register(http, "warm-exec", warm_exec, file("agent.sh", EXEC_AGENT, true)))?;
    runtime.block_on(cluster::register(
        http,
        "warm-python",
        "{ type: python }",
        file("agent.py", PYTHON_AGENT, false),
    ))?;
    for (name, agent, trips) in [("jobs_exec_warm", "warm-exec", 2.0), ("jobs_python_warm", "warm-python", 4.0)] {
        let peer = format!("no-op + {trips} pipe round trips");
        let limit = noop.zip(pipe).map(|(noop, pipe)| noop + trips * pipe);
        measured.push(load(env, http, name, agent, 1)?.median_against(&peer, limit));
    }
    runtime.block_on(cluster.shutdown());
    Ok(measured)
}

/// What a sequential job cannot be faster than, with 0.2 ms of our own: two commits, one HTTP and one stream round trip.
fn limit(rows: &[Row]) -> Option<f64> {
    let commit = median(rows, "commit", 1)?;
    Some(2.0 * commit + median(rows, "limit_http", 1)? + median(rows, "limit_stream", 1)? + 200.0)
}

/// Keeps `concurrency` jobs in flight, each on a connection of its own, from a thread of its own.
pub(crate) fn load(env: &Env, http: SocketAddr, name: &str, agent: &str, concurrency: usize) -> Result<Row> {
    let body = json!({"agent": agent, "input": {}}).to_string();
    let submit = request("POST", "/api/jobs?wait=30", body.as_bytes());
    let client = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let warm = env.clock.monotonic() + WARM_UP;
    let until = warm + MEASURED;
    let one = || async {
        let mut connection = Connection::open(http).await?;
        let mut latencies = Vec::new();
        loop {
            let begun = env.clock.monotonic();
            if begun > until {
                return anyhow::Ok(latencies);
            }
            let answer = connection.send(&submit).await?;
            let completed = answer.windows(COMPLETED.len()).any(|window| window == COMPLETED);
            ensure!(completed, "a job did not complete: {}", String::from_utf8_lossy(answer));
            if begun >= warm {
                latencies.push(env.clock.monotonic() - begun);
            }
        }
    };
    let all = client.block_on(try_join_all((0..concurrency).map(|_| one())))?;
    Ok(Row::rate(name, concurrency, all.concat(), MEASURED))
}
