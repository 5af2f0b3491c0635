//! Measures what Atlas adds to model calls: time for each call, and memory for calls that run at once.
//!
//! The model always calls a tool that does not exist, so that an agent makes as many calls as it may, one after the other.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use atlas_env::Env;
use serde_json::{Value, json};

use crate::cluster;
use crate::figures::Row;
use crate::http::{Connection, request};
use crate::model::{dev, job, keys, serve};
use crate::process::{Running, free_address, program, resident_mib};

/// Calls of the agent that makes many.
const CALLS: u32 = 101;

/// Jobs of each agent, and how many before them are not counted.
const JOBS: usize = 20;
const JOBS_NOT_COUNTED: usize = 3;

/// Calls that run at once when memory is measured.
const AT_ONCE: usize = 1_000;

/// When memory is read, after all calls have begun.
const SETTLED: Duration = Duration::from_secs(4);

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let [direct, call] = overhead(env, serve(env, false).await?).await?;
        let memory = memory(env, serve(env, true).await?).await?;
        Ok(vec![direct, call, memory])
    })
}

/// The time of a call that is made directly, and what a call by an agent takes more: the difference between jobs with many calls and jobs with
/// one, by the number of calls, without the same calls made directly.
async fn overhead(env: &Env, model: SocketAddr) -> Result<[Row; 2]> {
    let (_dev, http) = dev(env, model, &[]).await?;
    for (name, calls) in [("one-call", 1), ("many-calls", CALLS)] {
        let provider = format!("{{ type: llm, system_prompt: Measured., max_iterations: {calls} }}");
        cluster::register(http, name, &provider, Vec::new()).await?;
    }
    let (mut connection, mut provider) = (Connection::open(http).await?, Connection::open(model).await?);
    let requests = requests();
    let (mut directly, mut more) = (Vec::with_capacity(JOBS), Vec::with_capacity(JOBS));
    for turn in 0..JOBS_NOT_COUNTED + JOBS {
        let one = job(env, &mut connection, "one-call", &json!({})).await?;
        let many = job(env, &mut connection, "many-calls", &json!({})).await?;
        let begun = env.clock.monotonic();
        for request in &requests {
            provider.send(request).await?;
        }
        let direct = (env.clock.monotonic() - begun) / CALLS;
        if turn >= JOBS_NOT_COUNTED {
            directly.push(direct);
            more.push((many.saturating_sub(one) / (CALLS - 1)).saturating_sub(direct));
        }
    }
    let row = |name: &str, times: Vec<Duration>| {
        let all = times.iter().sum();
        Row::rate(name, 1, times, all)
    };
    Ok([row("model_direct", directly), row("model_call", more).median_against("0.6 ms", Some(600.0))])
}

/// The requests of an agent that makes many calls: each repeats the conversation so far.
fn requests() -> Vec<Vec<u8>> {
    let mut messages = vec![json!({"role": "user", "content": "{}"})];
    let mut next = || {
        let body = json!({"model": "measured", "max_tokens": 4_096, "messages": messages, "system": "Measured."});
        let call = json!({"type": "tool_use", "id": "t0", "name": "none", "input": {}});
        let error = json!({"error": "Unknown tool: none"}).to_string();
        let result = json!({"type": "tool_result", "tool_use_id": "t0", "content": error});
        messages.push(json!({"role": "assistant", "content": [call]}));
        messages.push(json!({"role": "user", "content": [result]}));
        request("POST", "/v1/messages", body.to_string().as_bytes())
    };
    (0..CALLS).map(|_| next()).collect()
}

/// The resident memory of a worker that reads many answers at once, each in pieces.
async fn memory(env: &Env, model: SocketAddr) -> Result<Row> {
    let folder = tempfile::tempdir_in(".")?;
    let (http, workers) = (free_address()?, free_address()?);
    let _controller = Running::start(
        Command::new(program("atlas-controller")?).arg("--data-dir").arg(folder.path().join("controller")).args([
            "--http-listen",
            &http,
            "--worker-listen",
            &workers,
            "--peer-listen",
            "127.0.0.1:0",
        ]),
        |line| line.contains("controller started"),
    )?;
    let mut worker = Command::new(program("atlas-worker")?);
    worker.arg("--data-dir").arg(folder.path().join("worker")).args(["--controller", &workers]);
    worker.args(["--llm-places", &AT_ONCE.to_string()]).envs(keys(model));
    let worker = Running::start(&mut worker, |line| line.contains("session open"))?;
    let http: SocketAddr = http.parse()?;
    cluster::register(http, "slow", "{ type: llm, system_prompt: Measured. }", Vec::new()).await?;
    let mut connection = Connection::open(http).await?;
    let submit = request("POST", "/api/jobs", json!({"agent": "slow", "input": {}}).to_string().as_bytes());
    for _ in 0..AT_ONCE {
        connection.send(&submit).await?;
    }
    let running = request("GET", "/api/jobs?status=running&limit=1000", b"");
    let deadline = env.clock.monotonic() + Duration::from_secs(15);
    loop {
        let jobs: Value = serde_json::from_slice(connection.send(&running).await?)?;
        if jobs.as_array().is_some_and(|jobs| jobs.len() == AT_ONCE) {
            break;
        }
        ensure!(env.clock.monotonic() < deadline, "not all jobs run");
        env.clock.sleep(Duration::from_millis(100)).await;
    }
    env.clock.sleep(SETTLED).await;
    Ok(Row::amount("model_calls_1000", resident_mib(&worker)?, "MiB").value_against("200 MiB", 200.0))
}
