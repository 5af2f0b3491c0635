//! A controller and workers as processes, and the agents that are measured.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use atlas_env::Env;
use atlas_package::PackFile;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cluster;
use crate::http::{Connection, request};
use crate::process::{Running, free_address, program};

/// How often something is looked for that takes a while.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(2);

pub(super) const PYTHON: &str = "steps-python";
pub(super) const NODE: &str = "steps-node";

pub(super) struct Site {
    env: Env,
    pub(super) http: SocketAddr,
    workers: String,
    pub(super) controller: Running,
    worker: Option<Running>,
    folder: TempDir,
}

impl Site {
    /// A controller, with a worker that has these options.
    pub(super) async fn start(env: &Env, options: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir_in(".")?;
        let (http, workers) = (free_address()?, free_address()?);
        let mut controller = Command::new(program("atlas-controller")?);
        controller.arg("--data-dir").arg(folder.path().join("controller")).args(["--http-listen", &http]);
        controller.args([
            "--worker-listen",
            &workers,
            "--peer-listen",
            "127.0.0.1:0",
            "--queue-max-size",
            "20000",
            "--journal-max",
            "1GiB",
        ]);
        let mut controller = Running::start(&mut controller, |line| line.contains("controller started"))?;
        controller.drain(env);
        let http = http.parse()?;
        let mut site = Self { env: env.clone(), http, workers, controller, worker: None, folder };
        site.worker(options)?;
        for (name, kind, file, text) in [
            (PYTHON, "python", "agent.py", include_str!("agent.py")),
            (NODE, "node", "agent.mjs", include_str!("agent.mjs")),
        ] {
            let file = PackFile { path: file.to_owned(), bytes: text.as_bytes().to_vec(), executable: false };
            site.register(name, &format!("{{ type: {kind} }}"), vec![file]).await?;
        }
        Ok(site)
    }

    /// Starts a worker in place of the one that runs, which is killed.
    pub(super) fn worker(&mut self, options: &[&str]) -> Result<()> {
        drop(self.worker.take());
        let mut worker = Command::new(program("atlas-worker")?);
        worker.arg("--data-dir").arg(self.folder.path().join("worker")).args(["--controller", &self.workers]);
        let mut worker = Running::start(worker.args(options), |line| line.contains("session open"))?;
        worker.drain(&self.env);
        self.worker = Some(worker);
        Ok(())
    }

    /// Registers a durable agent.
    pub(super) async fn register(&self, name: &str, provider: &str, files: Vec<PackFile>) -> Result<()> {
        cluster::register(self.http, name, &format!("{provider}\n  durable: true"), files).await
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) async fn open(&self) -> Result<Connection> {
        Connection::open(self.http).await
    }
}

/// A request that submits a job and returns its id.
pub(super) async fn submit(connection: &mut Connection, agent: &str, input: &Value) -> Result<String> {
    let body = json!({"agent": agent, "input": input}).to_string();
    let answer: Value = serde_json::from_slice(connection.send(&request("POST", "/api/jobs", body.as_bytes())).await?)?;
    Ok(answer["id"].as_str().context("a job has an id")?.to_owned())
}

/// Submits a job and waits for its end. Returns its output.
pub(super) async fn output(connection: &mut Connection, agent: &str, input: &Value) -> Result<Value> {
    let body = json!({"agent": agent, "input": input}).to_string();
    ended(connection.send(&request("POST", "/api/jobs?wait=60", body.as_bytes())).await?)
}

/// Waits until a job has ended. Returns the job.
pub(super) async fn wait(env: &Env, connection: &mut Connection, id: &str) -> Result<Value> {
    let look = request("GET", &format!("/api/jobs/{id}?view=full"), b"");
    loop {
        let job: Value = serde_json::from_slice(connection.send(&look).await?)?;
        match job["status"].as_str() {
            Some("pending" | "running") => env.clock.sleep(LOOK_EVERY).await,
            _ => return Ok(job),
        }
    }
}

/// The output of a job that has completed, from the answer that has it.
pub(super) fn ended(answer: &[u8]) -> Result<Value> {
    completed(serde_json::from_slice(answer)?)
}

pub(super) fn completed(mut job: Value) -> Result<Value> {
    ensure!(job["status"] == "completed", "a job did not complete: {job}");
    Ok(job["output_data"].take())
}

/// Times in µs from the output of a job.
pub(super) fn times(output: &Value) -> Result<Vec<Duration>> {
    let took = output["took"].as_array().or(output.as_array()).context("the output has no times")?;
    took.iter().map(|us| Ok(Duration::from_micros(us.as_u64().context("a time is a number")?))).collect()
}
