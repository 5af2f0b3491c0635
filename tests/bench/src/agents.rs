//! Measures what agents of the Loki kind add: calls of their own tools, and helpers that wait at the same time.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use atlas_env::Env;
use atlas_package::pack;
use serde_json::{Value, json};

use crate::figures::Row;
use crate::http::{Connection, request};
use crate::model::{dev, job, keys, serve};
use crate::process::{Running, free_address, program, resident_mib};

/// The calls that an agent with a `config.yaml` may make of its model.
const CALLS: u32 = 200;
const JOBS: usize = 5;
/// How much slower than the bare program a tool call may be.
const BASH_MORE: Duration = Duration::from_millis(2);
const PYTHON_MAX_US: f64 = 1_000.0;
/// Helpers of one agent, and the memory of the worker that runs them all.
const HELPERS: usize = 500;
const HELPERS_MIB: f64 = 300.0;
const PATIENCE: Duration = Duration::from_secs(120);
/// When memory is read, after all helpers have begun.
const SETTLED: Duration = Duration::from_secs(3);

const BASH_TOOL: &str = "#!/usr/bin/env bash\nset -e\n# @cmd Does nothing.\n# @option --n! The number.\nnothing() {\n    echo done >> \"$LLM_OUTPUT\"\n}\n";
const PYTHON_TOOL: &str = "def nothing(n: str):\n    \"\"\"Does nothing.\n\n    Args:\n        n: The number\n    \"\"\"\n    return \"done\"\n";

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let model = serve(env, false).await?;
        let mut rows = tools(env, model).await?;
        rows.push(helpers(env, serve(env, true).await?).await?);
        Ok(rows)
    })
}

/// The time of one call: a job that calls the tool as often as it may, less one that calls a tool without a process as often.
async fn tools(env: &Env, model: SocketAddr) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir_in(".")?;
    let (_dev, http) = dev(env, model, &[]).await?;
    let mut connection = Connection::open(http).await?;
    for (name, file, tool) in [("bash", "tools.sh", BASH_TOOL), ("python", "tools.py", PYTHON_TOOL)] {
        let agent = folder.path().join(name);
        write(&agent, "config.yaml", &format!("name: {name}\nauto_continue: true\n"))?;
        write(&agent, file, tool)?;
        register(&mut connection, &agent).await?;
    }
    let raw = raw_spawn(env, &folder.path().join("bash/tools.sh"))?;
    let mut rows = Vec::new();
    for (name, agent) in [("tool_call_bash", "bash"), ("tool_call_python", "python")] {
        let mut calls = Vec::with_capacity(JOBS);
        for turn in 0..=JOBS {
            let without = job(env, &mut connection, agent, &json!({"message": "call todo__list"})).await?;
            let with = job(env, &mut connection, agent, &json!({"message": "call nothing"})).await?;
            // The first one prepares the tools.
            if turn > 0 {
                calls.push(with.saturating_sub(without) / CALLS);
            }
        }
        let all = calls.iter().sum();
        let (peer, limit) = match agent {
            "bash" => ("a bare process + 2 ms", (raw + BASH_MORE).as_secs_f64() * 1e6),
            _ => ("1 ms", PYTHON_MAX_US),
        };
        rows.push(Row::rate(name, 1, calls, all).median_against(peer, Some(limit)));
    }
    Ok(rows)
}

fn write(folder: &Path, file: &str, text: &str) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join(file), text).with_context(|| format!("could not write {file}"))
}

async fn register(connection: &mut Connection, folder: &Path) -> Result<()> {
    let package = pack(folder).with_context(|| format!("could not pack {}", folder.display()))?;
    connection.send(&request("POST", "/api/agents", &package.bytes)).await?;
    Ok(())
}

/// How long the shell takes to read the file of tools and to end.
fn raw_spawn(env: &Env, file: &Path) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let begun = env.clock.monotonic();
        let status = Command::new("bash").arg(file).stdin(Stdio::null()).stdout(Stdio::null()).status()?;
        ensure!(status.success(), "bash ended with {status}");
        times.push(env.clock.monotonic() - begun);
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// The resident memory of a worker that runs an agent with many helpers, which all wait for their model.
async fn helpers(env: &Env, model: SocketAddr) -> Result<Row> {
    let folder = tempfile::tempdir_in(".")?;
    let (http, workers) = (free_address()?, free_address()?);
    let mut controller = Command::new(program("atlas-controller")?);
    controller.arg("--data-dir").arg(folder.path().join("controller"));
    controller.args(["--http-listen", &http, "--worker-listen", &workers, "--peer-listen", "127.0.0.1:0"]);
    let _controller = Running::start(&mut controller, |line| line.contains("controller started"))?;
    let mut worker = Command::new(program("atlas-worker")?);
    worker.arg("--data-dir").arg(folder.path().join("worker")).args(["--controller", &workers]);
    worker.args(["--llm-places", &(HELPERS + 10).to_string()]).envs(keys(model));
    let worker = Running::start(&mut worker, |line| line.contains("session open"))?;
    let mut connection = Connection::open(http.parse()?).await?;
    for (name, more) in [("lead", "can_spawn_agents: true\nmax_concurrent_agents: 1000\n"), ("kid", "")] {
        let agent = folder.path().join(name);
        write(&agent, "config.yaml", &format!("name: {name}\n{more}"))?;
        register(&mut connection, &agent).await?;
    }
    let lead = json!({"agent": "lead", "input": {"message": format!("spawn {HELPERS} kid")}}).to_string();
    connection.send(&request("POST", "/api/jobs", lead.as_bytes())).await?;
    let running = request("GET", "/api/jobs?status=running&agent=kid&limit=1000", b"");
    let deadline = env.clock.monotonic() + PATIENCE;
    loop {
        let jobs: Value = serde_json::from_slice(connection.send(&running).await?)?;
        let count = jobs.as_array().map_or(0, Vec::len);
        if count >= HELPERS {
            break;
        }
        ensure!(env.clock.monotonic() < deadline, "only {count} helpers run");
        env.clock.sleep(Duration::from_millis(100)).await;
    }
    env.clock.sleep(SETTLED).await;
    Ok(Row::amount("helpers_500", resident_mib(&worker)?, "MiB").value_against("300 MiB", HELPERS_MIB))
}
