//! Whole jobs: submitted over HTTP, granted, run, completed and read, all durable and with history on.

use std::io::Write;
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

/// The hidden verb that makes this program the warm exec agent: a shell would read its input byte by byte.
const AGENT_VERB: &str = "__answer-lines";

/// Answers every line and returns true, if this program was started as an agent.
pub(crate) fn answer_if_asked() -> bool {
    if std::env::args().nth(1).is_none_or(|verb| verb != AGENT_VERB) {
        return false;
    }
    let (mut lines, mut answers) = (std::io::stdin().lines(), std::io::stdout());
    while let Some(Ok(_)) = lines.next() {
        // Nobody reads: the worker is gone, and so is the reason to go on.
        if answers.write_all(b"{\"output\": {}}\n").and_then(|()| answers.flush()).is_err() {
            break;
        }
    }
    true
}

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
    let warm_exec = format!("{{ type: exec, command: [\"@atlas\", \"{AGENT_VERB}\"], mode: warm }}");
    runtime.block_on(cluster::register(http, "warm-exec", &warm_exec, Vec::new()))?;
    let python = PackFile { path: "agent.py".to_owned(), bytes: PYTHON_AGENT.as_bytes().to_vec(), executable: false };
    runtime.block_on(cluster::register(http, "warm-python", "{ type: python }", vec![python]))?;
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
