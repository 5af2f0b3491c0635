//! Measures whole jobs: submitted over HTTP, granted, run, completed and read, with durable writes and history.

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

/// The numbers of concurrent jobs, in addition to one at a time.
const CONCURRENCIES: [usize; 3] = [16, 64, 256];

/// For sequential jobs: the number of turns of each kind, and how many turns before that are not counted.
const TURNS: usize = 50;
const TURNS_NOT_COUNTED: usize = 5;

/// The number of jobs of one kind in a turn.
const JOBS_A_TURN: usize = 100;

/// The number of steps of the measured chain.
const STEPS: u32 = 5;

/// The warm-up time, which is not counted. Connections, warm slots and log segments are created in it.
const WARM_UP: Duration = Duration::from_millis(1500);

/// The measured time.
const MEASURED: Duration = Duration::from_secs(5);

/// Part of the object of a completed job.
const COMPLETED: &[u8] = b"\"status\":\"completed\"";

const PYTHON_AGENT: &str = "\
from atlas.runtime.base import AgentBase


class Nothing(AgentBase):
    async def execute(self, input_data):
        return {}
";

/// The hidden command that runs this program as the warm exec agent. A shell would read its input byte by byte.
pub(crate) const AGENT_VERB: &str = "__answer-lines";

/// If this program was started as an agent, answers every line and returns true.
pub(crate) fn answer_if_asked() -> bool {
    if std::env::args().nth(1).is_none_or(|verb| verb != AGENT_VERB) {
        return false;
    }
    let (mut lines, mut answers) = (std::io::stdin().lines(), std::io::stdout());
    while let Some(Ok(_)) = lines.next() {
        // The worker has ended, so the agent ends as well.
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
    let warm_exec = format!("{{ type: exec, command: [\"@atlas\", \"{AGENT_VERB}\"], mode: warm }}");
    let python = PackFile { path: "agent.py".to_owned(), bytes: PYTHON_AGENT.as_bytes().to_vec(), executable: false };
    runtime.block_on(async {
        cluster::register(http, "noop", "{ type: exec, command: [\"@noop\"] }", Vec::new()).await?;
        cluster::register(http, "warm-exec", &warm_exec, Vec::new()).await?;
        cluster::register(http, "warm-python", "{ type: python }", vec![python]).await
    })?;
    let job = |name, agent| Kind { name, request: submit(agent), parts: 1 };
    let kinds = [
        job("jobs_noop", "noop"),
        job("jobs_exec_warm", "warm-exec"),
        job("jobs_python_warm", "warm-python"),
        Kind { name: "chain_step", request: start_chain("noop"), parts: STEPS },
    ];
    let [noop, exec, python, step] = in_turn(env, http, TURNS, kinds)?;
    let step = step.median_against("a single no-op job", noop.p50_us);
    // Between two jobs an agent sleeps, and so does its core.
    let no_op = noop.p50_us.zip(median(rows, "limit_pipe_asleep", 1));
    let mut measured = vec![noop.median_against("its limit", limit(rows))];
    for concurrency in CONCURRENCIES {
        measured.push(load(env, http, "jobs_noop", "noop", concurrency)?);
    }
    for (row, trips) in [(exec, 2.0), (python, 4.0)] {
        let limit = no_op.map(|(no_op, pipe)| no_op + trips * pipe);
        measured.push(row.median_against(&format!("no-op + {trips} round trips of a pipe asleep"), limit));
    }
    measured.push(step);
    runtime.block_on(cluster.shutdown());
    Ok(measured)
}

/// A request that is measured, and the number of equal parts by which its time is divided.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) request: Vec<u8>,
    pub(crate) parts: u32,
}

/// Runs one job at a time and alternates the kinds, so that other load on the machine affects all kinds equally and
/// only their own difference remains.
pub(crate) fn in_turn<const N: usize>(env: &Env, http: SocketAddr, turns: usize, kinds: [Kind; N]) -> Result<[Row; N]> {
    let client = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut latencies = [const { Vec::new() }; N];
    client.block_on(async {
        let mut connection = Connection::open(http).await?;
        for turn in 0..TURNS_NOT_COUNTED + turns {
            for (kind, latencies) in kinds.iter().zip(&mut latencies) {
                for number in 0..JOBS_A_TURN {
                    let begun = env.clock.monotonic();
                    completed(connection.send(&kind.request).await?)?;
                    // For the first jobs of a turn, the agent's program has been asleep for longer than for the others.
                    if turn >= TURNS_NOT_COUNTED && number >= JOBS_A_TURN / 10 {
                        latencies.push((env.clock.monotonic() - begun) / kind.parts);
                    }
                }
            }
        }
        anyhow::Ok(())
    })?;
    let mut latencies = latencies.into_iter();
    Ok(kinds.map(|Kind { name, .. }| {
        let latencies: Vec<Duration> = latencies.next().unwrap_or_default();
        let took = latencies.iter().sum();
        Row::rate(name, 1, latencies, took)
    }))
}

/// The lower limit for a sequential job, with 0.2 ms for Atlas itself: two commits, one HTTP round trip and one stream
/// round trip.
fn limit(rows: &[Row]) -> Option<f64> {
    let commit = median(rows, "commit", 1)?;
    Some(2.0 * commit + median(rows, "limit_http", 1)? + median(rows, "limit_stream", 1)? + 200.0)
}

/// Keeps `concurrency` jobs in flight, each on its own connection, from a separate thread.
fn load(env: &Env, http: SocketAddr, name: &str, agent: &str, concurrency: usize) -> Result<Row> {
    let submit = submit(agent);
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
            completed(connection.send(&submit).await?)?;
            if begun >= warm {
                latencies.push(env.clock.monotonic() - begun);
            }
        }
    };
    let all = client.block_on(try_join_all((0..concurrency).map(|_| one())))?;
    Ok(Row::rate(name, concurrency, all.concat(), MEASURED))
}

/// The request that submits a job and waits for its end.
pub(crate) fn submit(agent: &str) -> Vec<u8> {
    request("POST", "/api/jobs?wait=30", json!({"agent": agent, "input": {}}).to_string().as_bytes())
}

/// The request that runs a chain of equal steps and waits for its end.
fn start_chain(agent: &str) -> Vec<u8> {
    let steps = vec![json!({ "agent": agent }); STEPS as usize];
    let body = json!({"chain": {"name": "steps", "steps": steps}, "input": {}});
    request("POST", "/api/chains?wait=30", body.to_string().as_bytes())
}

fn completed(answer: &[u8]) -> Result<()> {
    let completed = answer.windows(COMPLETED.len()).any(|window| window == COMPLETED);
    ensure!(completed, "a job did not complete: {}", String::from_utf8_lossy(answer));
    Ok(())
}
