//! A machine of a test cluster: a host, a disk, and one program that can be restarted.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::disk::Disk;
use crate::net::{Host, Network};
use crate::process::Process;
use crate::program::program;
use crate::shim::Shim;

/// The ports of a controller, the same on each host.
const HTTP: u16 = 7400;
const WORKERS: u16 = 7401;
const PEERS: u16 = 7402;

/// Marks an unexpected end in the text of a program.
pub(crate) const ENDED: &str = "--- ended by itself: ";

/// The program of a machine.
#[derive(Debug, Clone)]
pub enum Role {
    Controller {
        /// The TTL of a worker's session.
        session_ttl: Duration,
        /// Additional arguments for every start.
        always: Vec<String>,
        /// Arguments for joining. They are passed at every start; a controller that has joined ignores them.
        join: Vec<String>,
    },
    Worker {
        /// The hosts of the controllers that the worker is started with.
        controllers: Vec<String>,
        /// Maximum number of concurrent jobs.
        places: u32,
    },
}

/// A machine.
#[derive(Debug)]
pub struct Machine {
    network: Arc<Network>,
    name: String,
    role: Role,
    disk: Disk,
    shim: Option<Shim>,
    process: Option<Process>,
    paused: bool,
    /// The stderr of earlier processes.
    past: String,
}

impl Machine {
    /// Creates a machine without starting its program. `name` must be the name of a host in the network.
    pub fn new(network: Arc<Network>, name: &str, role: Role, disk: Disk, shim: Option<Shim>) -> Self {
        let name = name.to_owned();
        Self { network, name, role, disk, shim, process: None, paused: false, past: String::new() }
    }

    /// The name of the machine and of its host.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its host.
    pub fn host(&self) -> &Host {
        self.network.host(&self.name)
    }

    /// Its disk.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The shim that breaks syncs and clocks, if there is one.
    pub fn shim(&self) -> Option<&Shim> {
        self.shim.as_ref()
    }

    /// The HTTP address of a controller.
    pub fn http(&self) -> SocketAddr {
        (self.host().address(), HTTP).into()
    }

    /// The peer address of a controller.
    pub fn peers(&self) -> SocketAddr {
        (self.host().address(), PEERS).into()
    }

    /// Starts a controller with arguments for joining, which later starts use too.
    pub fn start_joining(&mut self, arguments: Vec<String>) {
        if let Role::Controller { join, .. } = &mut self.role {
            *join = arguments;
        }
        self.start();
    }

    /// Starts the program on its existing data, without waiting until it serves.
    pub fn start(&mut self) {
        if self.process.is_none() {
            let mut command = self.command();
            if let Some(shim) = &self.shim {
                shim.apply(&mut command);
            }
            self.process = Some(self.host().spawn(&command));
            self.paused = false;
        }
    }

    fn command(&self) -> Command {
        let data = self.disk.data();
        let at = |host: &Host, port: u16| SocketAddr::from((host.address(), port)).to_string();
        match &self.role {
            Role::Controller { session_ttl, always, join } => {
                let mut command = Command::new(program("atlas-controller"));
                command.arg("--data-dir").arg(data).args(["--log", "info"]);
                // The network has no other hosts.
                command.args([
                    "--auth",
                    "open",
                    "--http-listen",
                    &at(self.host(), HTTP),
                    "--worker-listen",
                    &at(self.host(), WORKERS),
                ]);
                command.args(["--peer-listen", &at(self.host(), PEERS), "--name", &self.name]);
                command.args(["--worker-session-ttl", &format!("{}ms", session_ttl.as_millis())]);
                command.args(always).args(join);
                command
            }
            Role::Worker { controllers, places } => {
                let mut command = Command::new(program("atlas-worker"));
                command.args(["--node", &self.name, "--places", &places.to_string(), "--log", "info"]);
                for controller in controllers {
                    command.args(["--controller", &at(self.network.host(controller), WORKERS)]);
                }
                command.arg("--data-dir").arg(data);
                command
            }
        }
    }

    /// `kill -9`; false if the program did not run.
    pub fn kill(&mut self) -> bool {
        let Some(mut process) = self.process.take() else { return false };
        let ended = process.ended();
        self.past += &process.text();
        match ended {
            Some(code) => self.past += &format!("{ENDED}{code:?}\n"),
            None => self.past += "--- killed\n",
        }
        process.kill();
        ended.is_none()
    }

    /// Sends SIGTERM and waits until the program ends; returns the exit code.
    pub fn stop(&mut self) -> Option<i32> {
        self.resume();
        let process = self.process.take()?;
        let text = process.text();
        let code = process.end(Signal::SIGTERM);
        self.past += &text;
        self.past += &format!("--- stopped: {code:?}\n");
        code
    }

    /// SIGSTOP; false if the program does not run.
    pub fn pause(&mut self) -> bool {
        let runs = self.runs();
        if let Some(process) = self.process.as_ref().filter(|_| runs) {
            process.signal(Signal::SIGSTOP);
            self.paused = true;
        }
        runs
    }

    /// SIGCONT, if the program is paused.
    pub fn resume(&mut self) {
        if let Some(process) = self.process.as_ref().filter(|_| self.paused) {
            process.signal(Signal::SIGCONT);
            self.paused = false;
        }
    }

    /// Whether the program runs, paused or not.
    pub fn runs(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| process.ended().is_none())
    }

    /// The exit code of a program that has ended by itself; none if it runs. After that, the program can be started
    /// again.
    pub fn ended(&mut self) -> Option<Option<i32>> {
        let code = self.process.as_mut()?.ended()?;
        if let Some(process) = self.process.take() {
            self.past += &process.text();
            self.past += &format!("{ENDED}{code:?}\n");
        }
        Some(code)
    }

    /// The stderr of the current process and all earlier ones.
    pub fn text(&self) -> String {
        let now = self.process.as_ref().map(Process::text).unwrap_or_default();
        format!("{}{now}", self.past)
    }
}
