//! The server of a row: a controller and a worker as processes on loopback, in their own folder.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use atlas_env::Env;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::agents::Prepared;
use crate::http::Http;
use crate::program::Programs;
use crate::result::{Judged, Stop};
use crate::setup::Setup;

/// Longest wait for a start; on a loaded machine it takes less.
const START_MAX: Duration = Duration::from_secs(60);

/// Longest wait for the worker's shutdown.
const STOP_MAX: Duration = Duration::from_secs(5);

/// Prefixes of variables that the programs do not inherit.
const PREFIXES: [&[u8]; 3] = [b"ATLAS_", b"ANTHROPIC_", b"OPENAI_"];

/// Polling interval.
const LOOK: Duration = Duration::from_millis(10);

/// A running cluster, stopped on drop.
#[derive(Debug)]
pub(crate) struct Cluster {
    // Stopped in this order, so that the worker can still report its last attempts to the controller.
    worker: Process,
    controller: Process,
    address: String,
    /// The log of the controller.
    log: PathBuf,
    /// The HTTP client of the cluster.
    pub(crate) http: Http,
}

impl Cluster {
    /// Starts both programs in `folder` and waits until the worker is ready.
    pub(crate) fn start(programs: &Programs, setup: &Setup, folder: &Path) -> Result<Self, Stop> {
        let log = folder.join("controller.log");
        let mut controller = Command::new(&programs.controller);
        controller.arg("--data-dir").arg(folder.join("controller")).args(["--log", "info", "--http-listen"]);
        controller.args(["127.0.0.1:0", "--worker-listen", "127.0.0.1:0", "--peer-listen", "127.0.0.1:0"]);
        controller.arg("--secrets-key").arg(key(folder)?).args(&setup.controller);
        let mut controller = Process::start(controller, &[], folder, &log)?;
        let (address, workers) = eventually(&mut controller, &log, || addresses(&log))?;
        let controller_log = log;
        let log = folder.join("worker.log");
        let mut worker = Command::new(&programs.worker);
        worker.args(["--log", "info", "--node", "local", "--drain-timeout", "0s", "--controller", &workers]);
        worker.arg("--data-dir").arg(folder.join("worker")).args(setup.worker_flags());
        let mut worker = Process::start(worker, &setup.worker_variables, folder, &log)?;
        let http = Http::new(&address)?;
        let ready = || {
            let nodes = http.get("/api/nodes").ok()?;
            nodes.as_array()?.iter().any(|node| node["health"] == "ready").then_some(())
        };
        eventually(&mut worker, &log, ready)?;
        Ok(Self { worker, controller, address, log: controller_log, http })
    }

    /// Registers agents.
    pub(crate) fn register<'a>(&self, agents: impl IntoIterator<Item = &'a Prepared>) -> Judged {
        for agent in agents {
            // Atlas for Python replaces an agent that is registered again (§3.1).
            let answer = self.http.send("POST", "/api/agents?replace=true", &[], Some(agent.archive.clone()))?;
            answer.success(&format!("the registration of \"{}\"", agent.name))?;
        }
        Ok(())
    }

    /// Deploys a packed skill.
    pub(crate) fn deploy_skill(&self, archive: Vec<u8>) -> Judged {
        self.http
            .send("POST", "/api/skills?replace=true", &[], Some(archive))?
            .success("the deployment of a skill")
            .map(drop)
    }

    /// A client of the MCP server, if the setup started one.
    pub(crate) fn mcp(&self) -> Result<Http, Stop> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let line = text.lines().find(|line| line.contains("compatible MCP server started"));
        let address = line.and_then(|line| word(line, "address="));
        Http::new(&address.ok_or_else(|| Stop::fail("no MCP server was started"))?)
    }

    /// Selects an orchestrator.
    pub(crate) fn select_orchestrator(&self, name: &str) -> Judged {
        let body = json!({"name": name}).to_string().into_bytes();
        let answer = self.http.send("POST", "/api/orchestrator", &[], Some(body))?;
        answer.success(&format!("the selection of \"{name}\"")).map(drop)
    }

    /// The HTTP address.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // A process that does not end in time is killed.
        self.worker.end(Signal::SIGTERM, STOP_MAX);
        self.controller.end(Signal::SIGKILL, STOP_MAX);
    }
}

/// A child process that does not outlive this value.
#[derive(Debug)]
struct Process(Child);

impl Process {
    fn start(mut command: Command, variables: &[(String, String)], folder: &Path, log: &Path) -> Result<Self, Stop> {
        let log = File::create(log).map_err(|error| Stop::system("write a log", error))?;
        // A key of this machine must not reach a provider.
        let is_ours = |name: &OsString| PREFIXES.iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix));
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_ours(name)) {
            command.env_remove(name);
        }
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.current_dir(folder).env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.spawn().map(Self).map_err(|error| Stop::system("start a program", error))
    }

    fn ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    fn end(&mut self, signal: Signal, within: Duration) {
        let Ok(id) = i32::try_from(self.0.id()) else { return };
        // The process may have ended already.
        let _ = kill(Pid::from_raw(id), signal);
        let clock = Env::system().clock;
        let deadline = clock.monotonic() + within;
        while !self.ended() && clock.monotonic() < deadline {
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A file with a key of secrets, outside the data directory.
fn key(folder: &Path) -> Result<PathBuf, Stop> {
    let path = folder.join("secrets.key");
    let failed = |error| Stop::system("write a key", error);
    fs::write(&path, format!("{}=\n", "A".repeat(43))).map_err(failed)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(path)
}

/// The addresses for HTTP and workers, from the controller's log.
fn addresses(log: &Path) -> Option<(String, String)> {
    let text = fs::read_to_string(log).ok()?;
    let line = text.lines().find(|line| line.contains("controller started"))?;
    Some((word(line, "http=")?, word(line, "workers=")?))
}

/// The word of a line of the log after a prefix.
fn word(line: &str, prefix: &str) -> Option<String> {
    line.split_whitespace().find_map(|word| word.strip_prefix(prefix)).map(str::to_owned)
}

fn eventually<T>(process: &mut Process, log: &Path, mut probe: impl FnMut() -> Option<T>) -> Result<T, Stop> {
    let clock = Env::system().clock;
    let deadline = clock.monotonic() + START_MAX;
    loop {
        if let Some(found) = probe() {
            return Ok(found);
        }
        if process.ended() || clock.monotonic() > deadline {
            let text = fs::read_to_string(log).unwrap_or_default();
            let last = text.lines().next_back().unwrap_or("without a word");
            return Err(Stop::fail(format!("a program did not start: {last}")));
        }
        std::thread::sleep(LOOK);
    }
}
