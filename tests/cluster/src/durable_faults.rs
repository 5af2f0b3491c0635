//! Durable programs with a real controller and a real worker: bad programs, lost workers, and packages that change under a job.
//!
//! A job leaves a line in its folder for all that it does, so a test sees what was done twice. A step that waits for a gate, which is a file
//! of that folder, keeps the job where the test wants it.

mod ends;
mod models;
mod scripts;
mod steps;
mod strict;
mod versions;

use std::fs;
use std::path::{Path, PathBuf};

use atlas_package::pack;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api::Api;
use crate::pair::{Controller, worker_command};
use crate::patience::{LONG, eventually, eventually_async};
use crate::process::Process;

const HEADER: &str = r#"
import asyncio, fcntl, os, random, socket, threading, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from atlas.durable import StepFailed, step
from atlas.runtime.base import AgentBase


def note(folder, line):
    with open(f"{folder}/lines", "a") as file:
        file.write(f"{line}\n")
    return line


def gate(folder, name):
    note(folder, f"waits for {name}")
    while not Path(folder, name).exists():
        time.sleep(0.02)
    return name


def lock(folder):
    """Holds a lock until the process ends, which may run several attempts."""
    file = open(f"{folder}/lock", "w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pass
    return file


class A(AgentBase):
"#;

/// A controller, and a worker that can be killed.
struct Rig {
    folder: TempDir,
    controller: Controller,
    api: Api,
    worker: Option<Process>,
    /// Of the worker's environment.
    variables: Vec<(&'static str, String)>,
}

impl Rig {
    fn start() -> Self {
        Self::start_with(Vec::new())
    }

    fn start_with(variables: Vec<(&'static str, String)>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let controller = Controller::start_with(folder.path(), &["--worker-session-ttl", "5s"]);
        let api = Api::new(&controller.http.to_string());
        let mut rig = Self { folder, controller, api, worker: None, variables };
        rig.start_worker();
        rig
    }

    fn start_worker(&mut self) {
        let mut command = worker_command(self.folder.path(), &self.controller);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        self.worker = Some(Process::start(&mut command));
    }

    /// `kill -9`.
    fn kill_worker(&mut self) {
        self.worker.take().expect("one runs").kill();
    }

    /// The package of a durable agent in Python whose class has this body.
    fn package(&self, name: &str, version: &str, more: &str, body: &str) -> Vec<u8> {
        let agent = self.folder.path().join(name);
        write(&agent, name, version, more, body);
        pack(&agent).expect("a package").bytes
    }

    async fn deploy(&self, name: &str, version: &str, more: &str, body: &str) {
        self.api.register(self.package(name, version, more, body)).await;
    }

    /// Submits a job that has a folder of its own.
    async fn submit(&self, agent: &str) -> Job {
        let folder = tempfile::tempdir_in(self.folder.path()).expect("a folder").keep();
        let asked = json!({"agent": agent, "input": {"folder": folder}, "questions": "wait"});
        let id = self.api.post("/api/jobs", asked).await["id"].as_str().expect("an id").to_owned();
        Job { id, folder }
    }

    /// Runs a job to its end.
    async fn run(&self, agent: &str) -> (Value, Job) {
        let job = self.submit(agent).await;
        (self.api.wait(&job.id).await, job)
    }

    /// What the job has logged.
    async fn log(&self, job: &Job) -> String {
        self.api.get(&format!("/api/jobs/{}/logs", job.id)).await.to_string()
    }

    /// Waits until the job has this status, or this reason.
    async fn until(&self, job: &Job, word: &str) -> Value {
        eventually_async(&format!("the job is {word}"), async || {
            let job = self.api.job(&job.id).await;
            if job["status"] == word || job["reason"] == word { Ok(job) } else { Err(job.to_string()) }
        })
        .await
    }

    /// The question that the job waits for.
    async fn question(&self, job: &Job) -> String {
        eventually_async("a question", async || {
            let job = self.api.job(&job.id).await;
            job["needs_answer"][0].as_str().map(str::to_owned).ok_or_else(|| job.to_string())
        })
        .await
    }
}

/// Writes a durable agent in Python.
fn write(agent: &Path, name: &str, version: &str, more: &str, body: &str) {
    fs::create_dir_all(agent).expect("a folder");
    // The contract comes last, so that who watches the folder finds a whole agent.
    fs::write(agent.join("agent.py"), format!("{}{body}", HEADER.trim_start())).expect("written");
    let contract =
        format!("agent:\n  name: {name}\n  version: {version}\n  durable: true\n  execution_timeout: 300\n{more}");
    fs::write(agent.join("agent.yaml"), contract).expect("written");
}

/// A job with its folder.
struct Job {
    id: String,
    folder: PathBuf,
}

impl Job {
    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.join("lines")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// How often it has left a line.
    fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|found| *found == line).count()
    }

    /// Waits until it has left a line this often.
    fn until_line(&self, line: &str, times: usize) {
        eventually(&format!("{times} of {line:?}"), LONG, || (self.count(line) >= times).then_some(()));
    }

    /// Waits for the end of the process that holds its lock.
    fn until_unlocked(&self) {
        let file = fs::File::open(self.folder.join("lock")).expect("a lock");
        eventually("the process ends", LONG, || file.try_lock().ok());
    }

    /// Opens a gate.
    fn open(&self, gate: &str) {
        fs::write(self.folder.join(gate), "").expect("written");
    }
}
