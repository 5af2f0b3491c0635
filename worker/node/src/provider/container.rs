//! Agents in a container, one per job (compatibility §25.4): one line of JSON in, the last line of the output is the answer.
//!
//! The client of the engine runs in a tree of its own and ends with the attempt. The container belongs to the engine, so
//! it has a name, by which it is removed when the attempt ends otherwise than by its own answer.

mod engine;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use atlas_contract::ProviderKind;
use atlas_policy::{Container, ContainerError};
use atlas_sandbox::{Access, Files};
use atlas_secrets::Redactor;
use atlas_types::FailureKind;
use serde::Deserialize;
use serde_json::Map;
use serde_json::value::RawValue;

pub(crate) use self::engine::Containers;
use self::engine::is_of_client;
use super::exec::{Process, Start, accept, document, too_large};
use super::io_loop::{Wait, Woken};
use super::library::{Known, Library};
use super::{Execution, Settings, StartError, UNCONFINED, elsewhere, stopped};
use crate::attempt::Work;
use crate::cgroup::Limits;
use crate::folder::OwnDirectory;
use crate::process::{Change, Supervisor};
use crate::provider::{Control, Shared};

/// How much longer than the agent its container may take, for the start.
const START_EXTRA: Duration = Duration::from_secs(5);

/// How much of an answer that is none is shown in an error.
const SHOWN_CHARS: usize = 200;

/// An agent whose slot ends with the job.
pub(crate) struct ContainerAgent {
    engine: OsString,
    supervisor: Arc<Supervisor>,
    settings: Arc<Settings>,
    shared: Shared,
}

/// The answer of a container: the last line of its output.
#[derive(Deserialize)]
struct Answer {
    output: Option<Box<RawValue>>,
    error: Option<String>,
}

impl ContainerAgent {
    /// None if this machine has no engine and the agent may run without one.
    pub(super) async fn of(work: &Work, shared: &Shared, control: &Control<'_>) -> Result<Option<Self>, StartError> {
        let settings = Arc::clone(&shared.settings);
        let found = tokio::select! {
            biased;
            () = stopped(control.mailbox) => return Err(StartError::Stopped),
            found = settings.containers.engine(&shared.env, &shared.supervisor) => found,
        };
        let engine = match found {
            Some(engine) => engine,
            None if settings.containers.preferred && !settings.sandboxes.is_required() => return Ok(None),
            None => {
                let why = "the contract asks for a container, and no engine answers on this node";
                return Err(StartError::Unconfined(format!("{}: {why}", work.agent.contract.name)));
            }
        };
        Ok(Some(Self { engine, supervisor: Arc::clone(&shared.supervisor), settings, shared: shared.clone() }))
    }

    pub(super) async fn execute(&mut self, work: &Arc<Work>, control: &mut Control<'_>) -> Execution {
        let library = Library::of(work, &self.shared);
        let known = match library.begin(work, control).await {
            Ok(known) => known,
            Err(end) => return end,
        };
        let execution = self.run(work, control, &known).await;
        library.settle(execution, work, control).await
    }

    async fn run(&self, work: &Arc<Work>, control: &mut Control<'_>, known: &Known) -> Execution {
        let name = format!("atlas-{}-{}", work.assignment.job, work.assignment.attempt.0);
        let mut environment = self.settings.containers.environment.clone();
        let secrets = control.secrets.variables(&[]);
        let names: Vec<String> = secrets.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        if let Some(name) = names.iter().find(|name| is_of_client(name)) {
            return self.refused(name);
        }
        // The client reads the last of two values of a name.
        environment.extend(secrets);
        let folder = match self.folder(work) {
            Ok(folder) => folder,
            Err(error) => {
                return Execution::failed(FailureKind::Internal, format!("could not copy the package: {error}"));
            }
        };
        let mounted = folder.as_ref().map_or(work.agent.directory.as_path(), OwnDirectory::path);
        let words = match self.words(work, &names, &name, mounted) {
            Ok(words) => words,
            Err(error) => return Execution::failed(FailureKind::Agent, error.to_string()),
        };
        control.sandbox = Some(format!("container of {}", self.engine.to_string_lossy()));
        control.limits =
            work.agent.limits().cpu.map(|most| format!("cpu time {} s a process by rlimit", most.as_secs()));
        let start = Start {
            program: self.engine.clone(),
            arguments: words,
            directory: folder.as_ref().map_or(Path::new("/"), OwnDirectory::path).to_owned(),
            own_directory: folder,
            environment,
            limits: Limits::default(),
            sandbox: None,
            // If this process is dead, the supervisor of the client asks for it.
            after: [&self.engine, &"rm".into(), &"--force".into(), &name.clone().into()].map(OsString::clone).to_vec(),
            passed: Vec::new(),
        };
        let mut process = match Process::spawn_with(start, work, &self.supervisor, &self.settings, control).await {
            Ok(process) => process,
            Err(failed) => return *failed,
        };
        let mut line = document(work, known);
        line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        line.push(b'\n');
        process.stdin.send(&line);
        process.stdin.finish();
        let containers = &self.settings.containers;
        let ended = self.wait(&mut process, work, control).await;
        // Removed by the engine after its own end; the request is only needed after another one, and does no harm.
        if matches!(ended, Err(_) | Ok(Execution::Failed { .. })) {
            // The client is dead by now: one that still fetches the image would start the container afterwards.
            containers.remove(&self.engine, &name, control.env, &self.supervisor).await;
        }
        ended.unwrap_or_else(|cut_short| {
            containers.remove_later(&self.engine, &name, control.env, &self.supervisor);
            cut_short
        })
    }

    /// The end of an attempt whose secret would be a variable of the client.
    fn refused(&self, name: &str) -> Execution {
        let engine = self.engine.to_string_lossy();
        let why = format!("the secret \"{name}\" would be a variable of {engine} itself");
        let code = Map::from_iter([("_error_code".to_owned(), UNCONFINED.into())]);
        Execution::failed(FailureKind::Agent, format!("the agent was not started: {why}")).measured(code)
    }

    /// The folder of an agent that may write to what is mounted: a copy of its package.
    fn folder(&self, work: &Work) -> io::Result<Option<OwnDirectory>> {
        let permissions = &work.agent.contract.permissions;
        match Access::of(&permissions.filesystem, &permissions.network).files {
            Files::Write => OwnDirectory::with_package(&self.settings.sandboxes.work, &work.agent.directory).map(Some),
            Files::Own | Files::Read => Ok(None),
        }
    }

    /// The arguments of the engine's client. `folder` is mounted.
    fn words(
        &self,
        work: &Work,
        secrets: &[String],
        name: &str,
        folder: &Path,
    ) -> Result<Vec<OsString>, ContainerError> {
        let contract = &work.agent.contract;
        let limits = work.agent.limits();
        let mut permissions = contract.permissions.clone();
        // Without reserved memory, the permissions say all: the default counts as well, lowered by policies.
        let reserves = contract.hardware.min_memory_gb.is_some_and(|gb| gb > 0);
        if let Some(bytes) = limits.memory_bytes.filter(|_| reserves) {
            permissions.max_memory_mb = i64::try_from(bytes >> 20).unwrap_or(i64::MAX);
        }
        let access = Access::of(&permissions.filesystem, &permissions.network);
        let network = if access.network { self.settings.containers.network.as_str() } else { "none" };
        let folder = folder.to_string_lossy();
        let container = Container { network, permissions: &permissions, secrets, folder: Some(folder.as_ref()) };
        let mut words = container.command_line()?;
        // The first word is the name of the client.
        words.remove(0);
        if let Some(cores) = limits.cores {
            // Options follow `run`; of two, the one of the permissions would count.
            match words.iter().position(|word| word == "--cpus") {
                Some(at) => words[at + 1] = cores.to_string(),
                None => drop(words.splice(1..1, ["--cpus".to_owned(), cores.to_string()])),
            }
        }
        if let Some(cpu) = limits.cpu {
            words.splice(1..1, ["--ulimit".to_owned(), format!("cpu={}", cpu.as_secs())]);
        }
        let [node, worker] = self.settings.containers.labels.clone();
        let own = [
            "--name".to_owned(),
            name.to_owned(),
            "--label".to_owned(),
            node,
            "--label".to_owned(),
            worker,
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

    /// Waits for the end of the client. As an error, why it was ended before.
    async fn wait(
        &self,
        process: &mut Process,
        work: &Arc<Work>,
        control: &mut Control<'_>,
    ) -> Result<Execution, Execution> {
        let limit = work.assignment.execution_timeout;
        let mut wait = Wait::until(control.now() + limit.as_duration() + START_EXTRA);
        let output_bytes_max = self.settings.output_bytes_max;
        loop {
            match process.wait(&mut wait, control).await {
                Woken::Io { pipes, tree } => {
                    if process.read(pipes, control, output_bytes_max).await {
                        return Err(too_large(output_bytes_max));
                    }
                    if let Some(change) = tree.then(|| process.tree.change()).flatten() {
                        return Ok(Self::conclude(process, change, control, output_bytes_max).await);
                    }
                }
                // Agents in containers cannot make calls.
                Woken::Answered => drop(control.answers()),
                Woken::TimedOut => return Err(Execution::timed_out(limit)),
                Woken::Stopped | Woken::Parked => return Err(Execution::stopped()),
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
        let (output, redactor) = (std::mem::take(&mut process.output), control.secrets.redactor().clone());
        let read = elsewhere(control.env, output.len(), move || answer(&output, &redactor)).await;
        read.unwrap_or_else(Execution::cut_short)
    }
}

/// Reads the last line of an output.
fn answer(output: &[u8], redactor: &Redactor) -> Execution {
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
            // Before it is cut, because a part of a value would not be found.
            let shown: String = redactor.text(line).chars().take(SHOWN_CHARS).collect();
            Execution::failed(FailureKind::Agent, format!("Invalid response from container: {shown}"))
        }
    }
}
