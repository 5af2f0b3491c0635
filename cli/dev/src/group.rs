//! Several controllers and workers, each in its own process, which runs this program with a hidden command.
//!
//! They are separate processes so that one of them can be killed. A child shuts down when its stdin closes, so that no
//! child outlives this process.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use atlas_env::Env;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::sealing::SealingKey;
use crate::{ControllerAddresses, DataDir, DevSettings, SettingsError};

/// Longest wait until a child reports that it is ready.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Longest wait for a child's orderly shutdown.
const END_WITHIN: Duration = Duration::from_secs(15);
/// The file with the list of processes, for `atlasctl dev kill`.
const FILE: &str = "processes.json";

/// Why a child could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The program did not start.
    #[error("could not start {name}")]
    Start {
        /// The name of the process.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The child ended before it was ready; the reason is on stderr.
    #[error("{name} ended before it was ready ({how})")]
    Ended {
        /// The name of the process.
        name: String,
        /// Its exit status or signal.
        how: String,
    },
    /// The child was not ready in time.
    #[error("{name} was not ready within {within:?}")]
    Late {
        /// The name of the process.
        name: String,
        /// How long this process waited.
        within: Duration,
    },
}

/// A child that ended by itself or was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitedProcess {
    /// The name of the process.
    pub name: String,
    /// Its exit status or signal: `exit 1`, `signal 9`.
    pub how: String,
    /// Whether a signal ended it.
    pub killed: bool,
}

/// What a controller needs to join the cluster.
#[derive(Debug, Clone)]
pub struct Joining {
    /// The peer address of a member.
    pub at: String,
    pub token: String,
}

struct Running {
    name: String,
    controller: bool,
    child: Child,
}

/// The processes of a development cluster.
pub struct Group {
    data: DataDir,
    log: String,
    settings: DevSettings,
    running: Vec<Running>,
    env: Env,
    _key: Option<SealingKey>,
}

impl Group {
    /// Creates a group without processes. Its controllers share one key of secrets, which is made if the settings name none.
    pub fn new(data: DataDir, log: &str, settings: &DevSettings, env: Env) -> Result<Self, SettingsError> {
        let key = SealingKey::for_cluster(&data, settings, &env)?;
        let settings = match &key {
            Some(key) => settings.clone().with_secrets_key(key.path()),
            None => settings.clone(),
        };
        Ok(Self { data, log: log.to_owned(), settings, running: Vec::new(), env, _key: key })
    }

    /// The data folder.
    pub fn data_dir(&self) -> &Path {
        self.data.path()
    }

    /// The number of running controllers.
    pub fn controllers(&self) -> usize {
        self.running.iter().filter(|running| running.controller).count()
    }

    /// Starts controllers in parallel and waits until all are ready.
    pub async fn start_controllers(
        &mut self,
        controllers: &[(ControllerAddresses, Option<Joining>)],
    ) -> Result<(), ChildError> {
        let mut children = Vec::new();
        for (controller, joining) in controllers {
            let mut command = self.controller_command(controller);
            if let Some(Joining { at, token }) = joining {
                command.args(["--join", at]).env("ATLAS_JOIN_TOKEN", token);
            }
            children.push((spawn(&controller.name, &mut command)?, &controller.name));
        }
        for (child, name) in children {
            self.ready(name, true, child).await?;
        }
        Ok(())
    }

    /// Starts a worker with the controllers' addresses and waits until it is ready.
    pub async fn start_worker(&mut self, name: &str, controllers: &[String]) -> Result<(), ChildError> {
        let child = spawn(name, &mut self.worker_command(name, controllers))?;
        self.ready(name, false, child).await
    }

    /// Restarts a controller with its existing data. It does not wait, because without a quorum the controller does not
    /// become ready.
    pub fn restart_controller(&mut self, controller: &ControllerAddresses) -> Result<(), ChildError> {
        let child = spawn(&controller.name, &mut self.controller_command(controller))?;
        self.add(&controller.name, true, child);
        Ok(())
    }

    /// Restarts a worker with its existing data.
    pub fn restart_worker(&mut self, name: &str, controllers: &[String]) -> Result<(), ChildError> {
        let child = spawn(name, &mut self.worker_command(name, controllers))?;
        self.add(name, false, child);
        Ok(())
    }

    /// Whether a process of this name runs.
    pub fn is_running(&self, name: &str) -> bool {
        self.running.iter().any(|running| running.name == name)
    }

    fn controller_command(&self, controller: &ControllerAddresses) -> Command {
        let mut command = self.command("controller");
        command.args(["--name", &controller.name]).arg("--data-dir").arg(controller.data_dir(self.data.path()));
        for (flag, address) in
            [("--http", controller.http), ("--workers", controller.workers), ("--peers", controller.peers)]
        {
            command.args([flag, &address.to_string()]);
        }
        command
    }

    fn worker_command(&self, name: &str, controllers: &[String]) -> Command {
        let mut command = self.command("worker");
        let data = self.data.path().join("workers").join(name);
        command.args(["--node", name]).arg("--data-dir").arg(data).args(["--controllers", &controllers.join(",")]);
        command
    }

    /// Completes when a child has ended.
    pub async fn gone(&mut self) -> ExitedProcess {
        loop {
            for at in 0..self.running.len() {
                if let Ok(Some(status)) = self.running[at].child.try_wait() {
                    let Running { name, .. } = self.running.remove(at);
                    self.tell();
                    return ExitedProcess { name, how: how(status), killed: status.code().is_none() };
                }
            }
            self.env.clock.sleep(Duration::from_millis(50)).await;
        }
    }

    /// Shuts down in order: the workers stop their agents and end their sessions, then the controllers close their
    /// logs.
    pub async fn shutdown(mut self) {
        let (controllers, workers): (Vec<_>, Vec<_>) = self.running.drain(..).partition(|running| running.controller);
        for mut part in [workers, controllers] {
            for running in &mut part {
                drop(running.child.stdin.take());
            }
            for running in &mut part {
                let ended = tokio::time::timeout(END_WITHIN, running.child.wait()).await;
                if ended.is_err() {
                    tracing::warn!(name = %running.name, "it did not shut down cleanly and was killed");
                    let _ = running.child.kill().await;
                }
            }
        }
        // With an outdated list, `dev kill` could kill unrelated processes.
        let _ = std::fs::remove_file(self.data.path().join(FILE));
    }

    fn command(&self, part: &str) -> Command {
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("atlasctl"));
        let mut command = Command::new(program);
        command.arg("dev-member").args(self.settings.arguments()).args([part, "--log", &self.log]);
        // Children have their own process group, so that Ctrl-C reaches only this process, which then stops them in
        // order.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).kill_on_drop(true);
        command
    }

    /// Waits for the line with which a child reports that it is ready.
    async fn ready(&mut self, name: &str, controller: bool, mut child: Child) -> Result<(), ChildError> {
        let stdout = child.stdout.take();
        let mut line = String::new();
        let said = async {
            match stdout {
                Some(stdout) => BufReader::new(stdout).read_line(&mut line).await.unwrap_or(0),
                None => 0,
            }
        };
        let said = tokio::time::timeout(READY_WITHIN, said).await;
        let said = said.map_err(|_| ChildError::Late { name: name.to_owned(), within: READY_WITHIN })?;
        if said == 0 {
            let how = child.wait().await.map_or_else(|error| error.to_string(), how);
            return Err(ChildError::Ended { name: name.to_owned(), how });
        }
        self.add(name, controller, child);
        Ok(())
    }

    fn add(&mut self, name: &str, controller: bool, child: Child) {
        self.running.push(Running { name: name.to_owned(), controller, child });
        self.tell();
    }

    /// Writes the list of processes to the data folder.
    fn tell(&self) {
        let processes: Vec<Value> = self
            .running
            .iter()
            .filter_map(|running| {
                let pid = running.child.id()?;
                let kind = if running.controller { "controller" } else { "worker" };
                Some(json!({"name": running.name, "kind": kind, "pid": pid, "started": started(pid)?}))
            })
            .collect();
        let path = self.data.path().join(FILE);
        // The file is replaced atomically, because other processes read it.
        let temporary = path.with_extension("tmp");
        let written = std::fs::write(&temporary, format!("{:#}\n", Value::from(processes)));
        if let Err(error) = written.and_then(|()| std::fs::rename(&temporary, &path)) {
            tracing::warn!(%error, path = %path.display(), "could not record the list of processes");
        }
    }
}

/// An entry in the list of processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The name of the process.
    pub name: String,
    /// True for a controller, false for a worker.
    pub controller: bool,
    /// The process id.
    pub pid: u32,
}

/// The running processes of the development cluster with its data in `root`.
pub fn processes(root: &Path) -> io::Result<Vec<Process>> {
    let bytes = match std::fs::read(root.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        bytes => bytes?,
    };
    let value: Value = serde_json::from_slice(&bytes)?;
    let listed = value.as_array().into_iter().flatten().filter_map(|process| {
        let pid = u32::try_from(process["pid"].as_u64()?).ok()?;
        // The system may have given the process id to another process, which must not be killed.
        (started(pid)? == process["started"].as_u64()?).then_some(())?;
        let name = process["name"].as_str()?.to_owned();
        Some(Process { name, controller: process["kind"] == "controller", pid })
    });
    Ok(listed.collect())
}

fn spawn(name: &str, command: &mut Command) -> Result<Child, ChildError> {
    command.spawn().map_err(|source| ChildError::Start { name: name.to_owned(), source })
}

fn how(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (_, Some(signal)) => format!("signal {signal}"),
        _ => "for an unknown reason".to_owned(),
    }
}

/// The start time of a process in clock ticks. Process id and start time together are unique until the machine
/// restarts.
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process name is in parentheses and can contain any character, including parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    // A killed process stays in the table as a zombie until its parent has waited for it.
    fields.next().filter(|state| !matches!(*state, "Z" | "X"))?;
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_does_not_run_before_its_parent_waits_for_it() {
        let mut child = std::process::Command::new("sleep").arg("86353").spawn().expect("a process");
        assert!(started(child.id()).is_some());
        child.kill().expect("killed");
        while started(child.id()).is_some() {
            std::thread::yield_now();
        }
        assert!(Path::new(&format!("/proc/{}", child.id())).exists(), "nobody has waited for it");
        child.wait().expect("waited for");
    }

    #[test]
    fn only_a_process_that_is_the_listed_one_counts() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(processes(dir.path()).expect("none"), []);
        let own = std::process::id();
        let started = started(own).expect("it runs");
        let list = json!([
            {"name": "c1", "kind": "controller", "pid": own, "started": started},
            {"name": "c2", "kind": "controller", "pid": own, "started": started + 1},
        ]);
        std::fs::write(dir.path().join(FILE), list.to_string()).expect("written");
        let found = processes(dir.path()).expect("readable");
        assert_eq!(found, [Process { name: "c1".to_owned(), controller: true, pid: own }]);
    }
}
