//! Agents in a container, one per job (compatibility §25.4): one line of JSON in, the last line of the output is the answer.
//!
//! The client of the engine runs in a tree of its own and ends with the attempt. The container belongs to the engine, so
//! it has a name, by which it is removed when the attempt ends otherwise than by its own answer.

use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use atlas_contract::{Contract, ProviderKind};
use atlas_env::Env;
use atlas_policy::{Container, ContainerError};
use atlas_types::FailureKind;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::exec::{Process, Start, accept, document, too_large};
use super::io_loop::{Wait, Woken};
use super::{Execution, Settings, StartError, elsewhere};
use crate::cgroup::Limits;
use crate::process::{Change, Supervisor};
use crate::slot::{Control, Shared, Work};

/// How much longer than the agent its container may take, for the start.
const START_EXTRA: Duration = Duration::from_secs(5);

/// Variables of the worker that clients of engines read.
const OF_ENGINES: [&str; 7] = [
    "DOCKER_HOST",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_CERT_PATH",
    "DOCKER_TLS_VERIFY",
    "CONTAINER_HOST",
    "XDG_RUNTIME_DIR",
];

/// Names of programs that start containers, in the order in which they are tried.
const ENGINES: [&str; 2] = ["docker", "podman"];

/// How agents run in containers on this node.
#[derive(Debug)]
pub(crate) struct Containers {
    /// The client of the engine that the operator chose.
    pub(crate) chosen: Option<String>,
    /// The network of agents that may use one.
    pub(crate) network: String,
    /// The node, by which its containers are found again.
    pub(crate) node: String,
    /// The client whose engine answered.
    pub(crate) found: OnceLock<OsString>,
}

impl Containers {
    /// The client whose engine answers. An engine that does not is asked again by the next job. Blocks.
    fn engine(&self) -> Option<OsString> {
        if let Some(found) = self.found.get() {
            return Some(found.clone());
        }
        let names: Vec<&str> = self.chosen.as_deref().map_or(ENGINES.to_vec(), |chosen| vec![chosen]);
        let found = names.into_iter().find(|name| answers(name)).map(OsString::from)?;
        self.remove_earlier(&found);
        Some(self.found.get_or_init(|| found).clone())
    }

    /// Removes containers that an earlier process of this node left.
    fn remove_earlier(&self, client: &OsStr) {
        let filter = format!("label=atlas.node={}", self.node);
        let mut list = Command::new(client);
        list.args(["ps", "--all", "--quiet", "--filter", &filter]).stdin(Stdio::null()).stderr(Stdio::null());
        let Ok(listed) = list.output() else { return };
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let ids: Vec<&str> = listed.split_whitespace().collect();
        if !ids.is_empty() {
            remove(client, &ids);
        }
    }
}

/// Removes containers, which ends them.
fn remove(client: &OsStr, names: &[&str]) {
    let mut remove = Command::new(client);
    remove.args(["rm", "--force"]).args(names);
    // One that has ended is removed by the engine itself.
    let _ = remove.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// True if an agent asks for a container.
pub(super) fn asks_for_one(contract: &Contract) -> bool {
    contract.permissions.isolation == "container"
        && matches!(contract.provider.kind, ProviderKind::Python | ProviderKind::Exec)
}

/// True if the engine behind a client answers.
fn answers(client: &str) -> bool {
    let mut ask = Command::new(client);
    ask.args(["version", "--format", "{{.Server.Version}}"]);
    ask.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    ask.status().is_ok_and(|status| status.success())
}

/// An agent whose slot ends with the job.
pub(crate) struct ContainerAgent {
    engine: OsString,
    supervisor: Arc<Supervisor>,
    settings: Arc<Settings>,
}

/// The answer of a container: the last line of its output.
#[derive(Deserialize)]
struct Answer {
    output: Option<Box<RawValue>>,
    error: Option<String>,
}

impl ContainerAgent {
    /// None if this machine has no engine and the agent may run without one.
    pub(super) async fn of(work: &Work, shared: &Shared) -> Result<Option<Self>, StartError> {
        let settings = Arc::clone(&shared.settings);
        let chosen = Arc::clone(&settings);
        let found = shared.env.spawn_blocking("find engine", move || chosen.containers.engine());
        let engine = match found.join().await.ok().flatten() {
            Some(engine) => engine,
            None if settings.sandboxes.is_required() => {
                let why = "the contract asks for a container, and no engine answers on this node";
                return Err(StartError::Unconfined(format!("{}: {why}", work.agent.contract.name)));
            }
            None => return Ok(None),
        };
        Ok(Some(Self { engine, supervisor: Arc::clone(&shared.supervisor), settings }))
    }

    pub(super) async fn execute(&mut self, work: &Arc<Work>, control: &mut Control<'_>) -> Execution {
        let name = format!("atlas-{}-{}", work.assignment.job, work.assignment.attempt.0);
        let mut environment = self.settings.environment.clone();
        environment.extend(OF_ENGINES.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?))));
        let secrets = control.secrets.variables(&environment);
        let names: Vec<String> = secrets.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        environment.extend(secrets);
        let words = match self.words(work, &names, &name) {
            Ok(words) => words,
            Err(error) => return Execution::failed(FailureKind::Agent, error.to_string()),
        };
        control.sandbox = Some(format!("container of {}", self.engine.to_string_lossy()));
        let (program, limits) = (self.engine.clone(), Limits::default());
        let start = Start { program, arguments: words, environment, limits, sandbox: None };
        let mut process = match Process::spawn_with(start, work, &self.supervisor, &self.settings, control).await {
            Ok(process) => process,
            Err(failed) => return *failed,
        };
        let mut line = document(work);
        line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        line.push(b'\n');
        process.stdin.send(&line);
        process.stdin.finish();
        let execution = self.wait(&mut process, work, control).await;
        // Removed by the engine after its own end; the request is only needed after another one, and does no harm.
        if matches!(execution, Execution::Failed { .. }) {
            self.remove(&name, control.env).await;
        }
        execution
    }

    /// The arguments of the engine's client.
    fn words(&self, work: &Work, secrets: &[String], name: &str) -> Result<Vec<OsString>, ContainerError> {
        let contract = &work.agent.contract;
        let limits = work.agent.limits();
        let mut permissions = contract.permissions.clone();
        if let Some(bytes) = limits.memory_bytes {
            permissions.max_memory_mb = i64::try_from(bytes >> 20).unwrap_or(i64::MAX);
        }
        let access = atlas_sandbox::Access::of(&permissions.filesystem, &permissions.network);
        let network = if access.network { self.settings.containers.network.as_str() } else { "none" };
        let folder = work.agent.directory.to_string_lossy();
        let container = Container { network, permissions: &permissions, secrets, folder: Some(folder.as_ref()) };
        let mut words = container.command_line()?;
        // The first word is the name of the client.
        words.remove(0);
        if let (Some(cores), Some(at)) = (limits.cores, words.iter().position(|word| word == "--cpus")) {
            words[at + 1] = cores.to_string();
        }
        let own = [
            "--name".to_owned(),
            name.to_owned(),
            "--label".to_owned(),
            format!("atlas.node={}", self.settings.containers.node),
            "--cap-drop".to_owned(),
            "ALL".to_owned(),
            "--security-opt".to_owned(),
            "no-new-privileges".to_owned(),
            "--pids-limit".to_owned(),
            self.settings.sandboxes.processes_max.to_string(),
        ];
        // After `run`.
        words.splice(1..1, own);
        // An exec agent names its program; the image of another one starts its own.
        if contract.provider.kind == ProviderKind::Exec {
            words.extend(contract.provider.command.iter().cloned());
        }
        Ok(words.into_iter().map(OsString::from).collect())
    }

    async fn wait(&self, process: &mut Process, work: &Arc<Work>, control: &mut Control<'_>) -> Execution {
        let limit = work.assignment.execution_timeout;
        let mut wait = Wait::until(control.now() + limit.as_duration() + START_EXTRA);
        let output_bytes_max = self.settings.output_bytes_max;
        loop {
            match process.wait(&mut wait, control).await {
                Woken::Io { pipes, tree } => {
                    if process.read(pipes, control, output_bytes_max).await {
                        return too_large(output_bytes_max);
                    }
                    if let Some(change) = tree.then(|| process.tree.change()).flatten() {
                        return Self::conclude(process, change, control, output_bytes_max).await;
                    }
                }
                // Agents in containers cannot make calls.
                Woken::Answered => drop(control.answers()),
                Woken::TimedOut => return Execution::timed_out(limit),
                Woken::Stopped => return Execution::stopped(),
            }
        }
    }

    async fn conclude(
        process: &mut Process,
        change: Change,
        control: &mut Control<'_>,
        output_bytes_max: usize,
    ) -> Execution {
        if process.drain(control, output_bytes_max).await {
            return too_large(output_bytes_max);
        }
        let complaint = process.complaint(control.secrets.redactor());
        match change {
            Change::Exited(status) if status.success() => {}
            Change::Exited(status) => {
                let code = status.code().unwrap_or(-1);
                return Execution::failed(
                    FailureKind::Agent,
                    format!("Container exited with code {code}: {complaint}"),
                );
            }
            Change::NotStarted { errno } => {
                let why = nix::errno::Errno::from_raw(errno).desc();
                return Execution::failed(
                    FailureKind::Internal,
                    format!("could not start the container engine: {why}"),
                );
            }
            Change::NotConfined(refused) => return Execution::unconfined(refused),
        }
        let output = std::mem::take(&mut process.output);
        let read = elsewhere(control.env, output.len(), move || answer(&output)).await;
        read.unwrap_or_else(Execution::cut_short)
    }

    async fn remove(&self, name: &str, env: &Env) {
        let (engine, name) = (self.engine.clone(), name.to_owned());
        let _ = env.spawn_blocking("remove container", move || remove(&engine, &[&name])).join().await;
    }
}

/// Reads the last line of an output.
fn answer(output: &[u8]) -> Execution {
    let text = String::from_utf8_lossy(output);
    let Some(line) = text.lines().rev().map(str::trim).find(|line| !line.is_empty()) else {
        return Execution::failed(FailureKind::Agent, "Container produced no output");
    };
    match serde_json::from_str::<Answer>(line) {
        Ok(Answer { error: Some(error), .. }) => {
            Execution::failed(FailureKind::Agent, format!("Container agent error: {error}"))
        }
        Ok(Answer { output: Some(output), .. }) => accept(output, false),
        Ok(_) | Err(_) => {
            let shown: String = line.chars().take(200).collect();
            Execution::failed(FailureKind::Agent, format!("Invalid response from container: {shown}"))
        }
    }
}
