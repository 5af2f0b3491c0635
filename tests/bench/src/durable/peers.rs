//! The same workflow in Restate and in DBOS. Their programs report how long each step took, as Atlas's do.
//!
//! `ATLAS_BENCH_PYTHON` names a Python with the packages `restate-sdk`, `hypercorn` and `dbos`, and `ATLAS_BENCH_RESTATE` the program
//! `restate-server`. What is missing is said and left out.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use atlas_env::Env;
use atlas_postgres::Postgres;
use serde_json::Value;

use super::site::times;
use super::steps::{AT_ONCE, MEASURED, Ours, WORKFLOW, load};
use crate::figures::Row;
use crate::http::{Connection, request_with};
use crate::process::free_address;

const PROGRAM: &str = include_str!("peers.py");
/// The exit code of that program if a package is missing.
const MISSING: i32 = 69;

/// Workflows one after the other, and how many more before them are not counted.
const WORKFLOWS: usize = 100;
const NOT_COUNTED: usize = 20;
const START_MAX: Duration = Duration::from_secs(60);

/// The settings of Restate that help a single server on two cores: fewer partitions, and no work that is not asked for. Its writes stay
/// durable, as by default.
const SETTINGS: [(&str, &str); 5] = [
    ("RESTATE_DEFAULT_NUM_PARTITIONS", "2"),
    ("RESTATE_LOG_FILTER", "warn"),
    ("RESTATE_DISABLE_TELEMETRY", "true"),
    ("RESTATE_ADMIN__DISABLE_WEB_UI", "true"),
    ("RESTATE_LISTEN_MODE", "tcp"),
];

pub(super) async fn run(env: &Env, ours: &Ours) -> Result<Vec<Row>> {
    let Some(python) = std::env::var_os("ATLAS_BENCH_PYTHON") else {
        eprintln!("ATLAS_BENCH_PYTHON names no Python: Restate and DBOS are not measured");
        return Ok(Vec::new());
    };
    let python = Path::new(&python);
    let mut rows = Vec::new();
    match std::env::var_os("ATLAS_BENCH_RESTATE") {
        Some(server) => rows.extend(restate(env, python, Path::new(&server)).await?.unwrap_or_default()),
        None => eprintln!("ATLAS_BENCH_RESTATE names no restate-server: Restate is not measured"),
    }
    if let Some(postgres) = Postgres::start() {
        rows.extend(dbos(python, &postgres)?.unwrap_or_default());
    }
    // What Atlas takes beside each of them.
    let beside = rows.chunks_exact(2).flat_map(|pair| {
        let whose = |row: &Row| format!("{}'s", row.name.rsplit('_').next().unwrap_or_default());
        let step = ours.step.clone().median_against(&whose(&pair[0]), pair[0].p50_us);
        [step, ours.in_flight.clone().value_against(&whose(&pair[1]), pair[1].value)]
    });
    let beside: Vec<Row> = beside.collect();
    Ok([rows, beside].concat())
}

/// A process that is killed when dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended on its own.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server of Restate, and a program that it calls.
async fn restate(env: &Env, python: &Path, server: &Path) -> Result<Option<Vec<Row>>> {
    let service: SocketAddr = free_address()?.parse()?;
    let mut command = Command::new(python);
    command.args(["-c", PROGRAM, "restate", &service.port().to_string()]);
    let child = command.stdout(Stdio::piped()).spawn();
    let mut program = Killed(child.with_context(|| format!("could not start {}", python.display()))?);
    let mut line = String::new();
    BufReader::new(program.0.stdout.take().context("piped")?).read_line(&mut line)?;
    if line.is_empty() {
        let status = program.0.wait()?;
        ensure!(status.code() == Some(MISSING), "the program of Restate ended: {status}");
        eprintln!("the package restate-sdk or hypercorn is missing: Restate is not measured");
        return Ok(None);
    }
    let folder = tempfile::tempdir_in(".")?;
    let [ingress, admin, node] = [free_address()?, free_address()?, free_address()?];
    let port = |address: &str| address.rsplit(':').next().unwrap_or_default().to_owned();
    let mut command = Command::new(server);
    command.arg("--no-logo").env("RESTATE_BASE_DIR", folder.path()).env("RESTATE_BIND_IP", "127.0.0.1").envs(SETTINGS);
    command.env("RESTATE_INGRESS__BIND_PORT", port(&ingress)).env("RESTATE_ADMIN__BIND_PORT", port(&admin));
    command.env("RESTATE_BIND_PORT", port(&node)).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _server = Killed(command.spawn().with_context(|| format!("could not start {}", server.display()))?);
    let deployment = serde_json::json!({ "uri": format!("http://{service}") }).to_string();
    let register = json("/deployments", deployment.as_bytes());
    retried(env, &admin, &register).await.context("Restate does not take the program")?;

    let workflow = json("/steps/run", WORKFLOW.to_string().as_bytes());
    retried(env, &ingress, &workflow).await.context("Restate does not run the workflow")?;
    let mut connection = Connection::open(ingress.parse()?).await?;
    let mut took = Vec::new();
    for number in 0..NOT_COUNTED + WORKFLOWS {
        let output = read(connection.send(&workflow).await?)?;
        if number >= NOT_COUNTED {
            took.extend(times(&output)?);
        }
    }
    let all = took.iter().sum();
    let step = Row::rate("durable_step_restate", 1, took, all);
    Ok(Some(vec![step, load(env, ingress.parse()?, "durable_steps_restate", &workflow, read).await?]))
}

fn json(path: &str, body: &[u8]) -> Vec<u8> {
    request_with("POST", path, &[("content-type", "application/json")], body)
}

fn read(answer: &[u8]) -> Result<Value> {
    Ok(serde_json::from_slice(answer)?)
}

/// Sends a request until it is answered with success.
async fn retried(env: &Env, address: &str, request: &[u8]) -> Result<()> {
    let deadline = env.clock.monotonic() + START_MAX;
    loop {
        let sent = async { Connection::open(address.parse()?).await?.send(request).await.map(drop) };
        match sent.await {
            Ok(()) => return Ok(()),
            Err(error) if env.clock.monotonic() >= deadline => return Err(error),
            Err(_) => env.clock.sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Workflows of DBOS, which run in the program that starts them.
fn dbos(python: &Path, postgres: &Postgres) -> Result<Option<Vec<Row>>> {
    let url = postgres.url();
    let mut command = Command::new(python);
    command.args(["-c", PROGRAM, "dbos", &url]);
    command.args([WORKFLOW.to_string(), AT_ONCE.to_string(), MEASURED.as_secs().to_string()]);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("could not start {}", python.display()))?;
    if output.status.code() == Some(MISSING) {
        eprintln!("the package dbos is missing: DBOS is not measured");
        return Ok(None);
    }
    ensure!(output.status.success(), "the workflows of DBOS failed: {}", output.status);
    let printed = String::from_utf8(output.stdout)?;
    let measured: Value = serde_json::from_str(printed.lines().last().unwrap_or_default())?;
    let took = times(&measured)?;
    let all = took.iter().sum();
    let mut in_flight =
        Row::amount("durable_steps_dbos", measured["steps_a_second"].as_f64().unwrap_or_default(), "1/s");
    in_flight.concurrency = AT_ONCE;
    Ok(Some(vec![Row::rate("durable_step_dbos", 1, took, all), in_flight]))
}
