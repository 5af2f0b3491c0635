//! A machine of a test cluster: a host, a disk, and one program that is restarted on it.

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

/// Stands in the text of a program that ended though nobody asked it to.
pub(crate) const ENDED: &str = "--- ended by itself: ";

/// What runs on a machine.
#[derive(Debug, Clone)]
pub enum Role {
    Controller {
        /// How long a worker's session lives.
        session_ttl: Duration,
        /// More arguments for every start.
        always: Vec<String>,
        /// How it joins: from then on arguments for every start, since one that has joined does not look at them.
        join: Vec<String>,
    },
    Worker {
        /// The hosts of the controllers that it knows.
        controllers: Vec<String>,
        /// Jobs at once.
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
    /// What earlier lives wrote to stderr.
    past: String,
}

impl Machine {
    /// A machine whose program does not run yet. Its name is that of a host of the network.
    pub fn new(network: Arc<Network>, name: &str, role: Role, disk: Disk, shim: Option<Shim>) -> Self {
        let name = name.to_owned();
        Self { network, name, role, disk, shim, process: None, paused: false, past: String::new() }
    }

    /// Its name, also its host's.
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

    /// What it was built with to break syncs and clocks.
    pub fn shim(&self) -> Option<&Shim> {
        self.shim.as_ref()
    }

    /// Where a controller serves HTTP.
    pub fn http(&self) -> SocketAddr {
        (self.host().address(), HTTP).into()
    }

    /// Where a controller listens for its peers.
    pub fn peers(&self) -> SocketAddr {
        (self.host().address(), PEERS).into()
    }

    /// Starts a controller that joins a cluster by these arguments, now and whenever it is started again.
    pub fn start_joining(&mut self, arguments: Vec<String>) {
        if let Role::Controller { join, .. } = &mut self.role {
            *join = arguments;
        }
        self.start();
    }

    /// Starts its program on the data that is there. It may take a while until it serves.
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
                command.args(["--http-listen", &at(self.host(), HTTP), "--worker-listen", &at(self.host(), WORKERS)]);
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

    /// `kill -9`; false if it did not run.
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

    /// Asks it to end and waits until it has; its exit code.
    pub fn stop(&mut self) -> Option<i32> {
        self.resume();
        let process = self.process.take()?;
        let text = process.text();
        let code = process.end(Signal::SIGTERM);
        self.past += &text;
        self.past += &format!("--- stopped: {code:?}\n");
        code
    }

    /// SIGSTOP; false if it does not run.
    pub fn pause(&mut self) -> bool {
        let runs = self.runs();
        if let Some(process) = self.process.as_ref().filter(|_| runs) {
            process.signal(Signal::SIGSTOP);
            self.paused = true;
        }
        runs
    }

    /// SIGCONT, if it was paused.
    pub fn resume(&mut self) {
        if let Some(process) = self.process.as_ref().filter(|_| self.paused) {
            process.signal(Signal::SIGCONT);
            self.paused = false;
        }
    }

    /// Whether its program runs, stopped or not.
    pub fn runs(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| process.ended().is_none())
    }

    /// If its program has ended on its own: its exit code. It can be started again then.
    pub fn ended(&mut self) -> Option<Option<i32>> {
        let code = self.process.as_mut()?.ended()?;
        if let Some(process) = self.process.take() {
            self.past += &process.text();
            self.past += &format!("{ENDED}{code:?}\n");
        }
        Some(code)
    }

    /// What all its lives wrote to stderr.
    pub fn text(&self) -> String {
        let now = self.process.as_ref().map(Process::text).unwrap_or_default();
        format!("{}{now}", self.past)
    }
}
