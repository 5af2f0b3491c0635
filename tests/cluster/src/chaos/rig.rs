//! The cluster of a run: controllers and workers on separate machines, and one host for all clients.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::call::{Http, Request};
use super::journal::Outcome;
use super::workload::{KINDS, package};
use crate::disk::Disk;
use crate::machine::{Machine, Role};
use crate::net::Network;
use crate::patience::LONG;
use crate::program::program;
use crate::shim::{self, Shim};

/// The host of all clients.
pub(crate) const CLIENTS: &str = "clients";

/// Pause before a request is repeated.
const PAUSE: Duration = Duration::from_millis(100);

/// The layout of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Number of controllers.
    pub controllers: usize,
    /// Number of workers.
    pub workers: usize,
    /// Maximum number of concurrent jobs per worker.
    pub places: u32,
    /// The TTL of a worker's session.
    pub session_ttl: Duration,
    /// Maximum number of waiting and running jobs.
    pub queue_max: u64,
    /// The size of each controller's disk in MiB; none for the machine's own disk.
    pub disk_mib: Option<u64>,
    /// Whether the controllers run with the shim, which breaks syncs and clocks.
    pub shim: bool,
    /// Additional options of every controller.
    pub options: &'static [&'static str],
}

impl Layout {
    /// One controller and two workers.
    pub const SMALL: Self = Self {
        controllers: 1,
        workers: 2,
        places: 6,
        session_ttl: Duration::from_secs(2),
        queue_max: 10_000,
        disk_mib: None,
        shim: false,
        options: &[],
    };
}

impl std::fmt::Debug for Rig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rig").field("controllers", &self.controllers).field("workers", &self.workers).finish()
    }
}

/// A running cluster.
pub struct Rig {
    pub(crate) env: Env,
    pub(crate) network: Arc<Network>,
    pub(crate) controllers: Vec<Machine>,
    pub(crate) workers: Vec<Machine>,
    pub(crate) session_ttl: Duration,
    /// The file of side effects.
    pub(crate) effects: PathBuf,
    /// Controllers with an empty disk that are not members yet, with the controller through which they join.
    out: BTreeMap<usize, usize>,
    /// A log of the faults with their times, for diagnosis.
    notes: Vec<String>,
    http: Http,
    runtime: Runtime,
}

/// The names of all hosts of a layout.
pub(crate) fn hosts(layout: &Layout) -> Vec<String> {
    let named = |prefix: char, count: usize| (1..=count).map(move |number| format!("{prefix}{number}"));
    named('c', layout.controllers).chain(named('w', layout.workers)).chain([CLIENTS.to_owned()]).collect()
}

impl Rig {
    /// Starts a cluster in `folder` on loopback addresses and waits until it serves.
    pub fn on_loopback(layout: &Layout, folder: &Path) -> Result<Self, String> {
        let names = hosts(layout);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Self::start(layout, Arc::new(Network::loopback(&names)), folder)
    }

    /// Starts a cluster in `folder` and waits until it serves. Must be called on the clients' host.
    pub(crate) fn start(layout: &Layout, network: Arc<Network>, folder: &Path) -> Result<Self, String> {
        let names = hosts(layout);
        let (controllers, workers) = names[..names.len() - 1].split_at(layout.controllers);
        let library = layout.shim.then(|| shim::build(folder)).transpose()?;
        let machine = |name: &String, role: Role, is_controller: bool| -> Result<Machine, String> {
            let at = folder.join(name);
            let disk = match layout.disk_mib.filter(|_| is_controller) {
                Some(mib) => Disk::limited(at, mib, network.host(name))?,
                None => Disk::folder(at),
            };
            let orders = folder.join(format!("{name}.orders"));
            let shim = library.as_ref().filter(|_| is_controller).map(|library| Shim::new(library, orders));
            Ok(Machine::new(Arc::clone(&network), name, role, disk, shim))
        };
        let mut always = ["--queue-max-size".to_owned(), layout.queue_max.to_string()].to_vec();
        always.extend(layout.options.iter().map(|&word| word.to_owned()));
        let controller = Role::Controller { session_ttl: layout.session_ttl, always, join: Vec::new() };
        let worker = Role::Worker { controllers: controllers.to_vec(), places: layout.places };
        let mut rig = Self {
            env: Env::system(),
            controllers: controllers
                .iter()
                .map(|name| machine(name, controller.clone(), true))
                .collect::<Result<_, _>>()?,
            workers: workers.iter().map(|name| machine(name, worker.clone(), false)).collect::<Result<_, _>>()?,
            session_ttl: layout.session_ttl,
            effects: folder.join("effects"),
            out: BTreeMap::new(),
            notes: Vec::new(),
            http: Http::new(),
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"),
            network,
        };
        fs::write(&rig.effects, "").expect("written");
        let formed = rig.form();
        if formed.is_err() {
            rig.write_logs(folder);
        }
        formed.map(|()| rig)
    }

    fn form(&mut self) -> Result<(), String> {
        self.controllers[0].start();
        self.until("the first controller serves", LONG, |rig| rig.serves(0))?;
        for which in 1..self.controllers.len() {
            self.join(which, 0)?;
        }
        for kind in &KINDS {
            let bytes = Some(package(kind, &program("atlas-chaos"), &self.effects));
            let request = Request { method: "POST", path: "/api/agents", bytes, ..Request::default() };
            let at = self.controllers[0].http();
            match self.runtime.block_on(self.http.call(at, request)) {
                Outcome::Done(_) => {}
                other => return Err(format!("the agent {} was not registered: {other:?}", kind.name)),
            }
        }
        self.workers.iter_mut().for_each(Machine::start);
        self.until("all workers are there", LONG, |rig| {
            let nodes = rig.get(0, "/api/nodes");
            let ready = |nodes: &Value| {
                nodes.as_array().is_some_and(|nodes| {
                    nodes.iter().filter(|node| node["health"] == "ready").count() == rig.workers.len()
                })
            };
            nodes.as_ref().is_some_and(ready)
        })
    }

    /// Joins a controller with an empty disk through another controller, and waits until it is a voter.
    pub(crate) fn join(&mut self, which: usize, through: usize) -> Result<(), String> {
        // `heal` must not start the controller before it has a token, because it would form its own cluster.
        self.out.insert(which, through);
        let token = self.token(through)?;
        let peers = self.controllers[through].peers().to_string();
        self.out.remove(&which);
        self.controllers[which].start_joining(["--join", &peers, "--token", &token].map(str::to_owned).to_vec());
        let name = self.controllers[which].name().to_owned();
        self.until(&format!("{name} votes"), LONG, |rig| rig.number(through, &name, true).is_some())?;
        self.until(&format!("{name} serves"), LONG, |rig| rig.serves(which))
    }

    fn token(&self, through: usize) -> Result<String, String> {
        let at = self.controllers[through].http();
        let wanted = json!({"kind": "controller", "expires_s": 600});
        let mut refused = String::new();
        let deadline = self.env.clock.monotonic() + LONG;
        while self.env.clock.monotonic() < deadline {
            match self.ask(async |http| http.post(at, "/api/cluster/join-tokens", wanted.clone()).await) {
                Outcome::Done(answer) => return Ok(answer.body["token"].as_str().unwrap_or_default().to_owned()),
                other => refused = format!("{other:?}"),
            }
            std::thread::sleep(PAUSE);
        }
        Err(format!("no token to join with: {refused}"))
    }

    /// Removes a member by its number, and repeats the request until the removal is certain; false if it is not certain
    /// within [`LONG`].
    pub(crate) fn remove(&self, number: u64, through: usize) -> bool {
        let (at, path) = (self.controllers[through].http(), format!("/api/cluster/members/{number}"));
        let request = || Request { method: "DELETE", path: &path, ..Request::default() };
        let removed = self.until("a member is removed", LONG, |rig| {
            match rig.ask(async |http| http.call(at, request()).await) {
                Outcome::Done(_) => true,
                // No such member: an earlier request with an unknown outcome has removed it.
                Outcome::Refused(refusal) => refusal.code == "E6001",
                Outcome::Unknown(_) => false,
            }
        });
        removed.is_ok()
    }

    /// The number of a member, by its name, as a controller sees it. With `votes`, none unless the member is a voter
    /// and no membership change is in progress.
    pub(crate) fn number(&self, at: usize, name: &str, votes: bool) -> Option<u64> {
        let status = self.get(at, "/api/cluster")?;
        let found = status["members"].as_array()?.iter().find(|member| member["name"] == name)?;
        let voter = ["leader", "follower"].contains(&found["role"].as_str()?) && status["changing"] == false;
        found["id"].as_u64().filter(|_| voter || !votes)
    }

    /// The HTTP addresses of the controllers.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.controllers.iter().map(Machine::http).collect()
    }

    /// The peer addresses of the controllers.
    pub fn peers(&self) -> Vec<SocketAddr> {
        self.controllers.iter().map(Machine::peers).collect()
    }

    /// `kill -9` of a controller.
    pub fn kill(&mut self, controller: usize) {
        self.controllers[controller].kill();
    }

    /// Starts a controller again on its data, and waits until it serves.
    pub fn start_again(&mut self, controller: usize) -> Result<(), String> {
        self.controllers[controller].start();
        self.until("the controller serves again", LONG, |rig| rig.serves(controller))
    }

    /// The answer of a controller, if it has one.
    pub fn get(&self, controller: usize, path: &str) -> Option<Value> {
        match self.runtime.block_on(self.http.get(self.controllers[controller].http(), path)) {
            Outcome::Done(answer) => Some(answer.body),
            _ => None,
        }
    }

    /// Runs a future with the HTTP client.
    pub(crate) fn ask<T>(&self, asking: impl AsyncFnOnce(&Http) -> T) -> T {
        self.runtime.block_on(asking(&self.http))
    }

    /// Whether a controller answers a read that needs a leader.
    pub(crate) fn serves(&self, controller: usize) -> bool {
        self.get(controller, "/api/ready").is_some() && self.get(controller, "/api/jobs?limit=1").is_some()
    }

    /// The leader, as the first controller that answers sees it.
    pub fn leader(&self) -> Option<usize> {
        if self.controllers.len() == 1 {
            return Some(0);
        }
        let name = (0..self.controllers.len()).find_map(|index| {
            let status = self.get(index, "/api/cluster")?;
            status["leader"].as_str().filter(|name| !name.is_empty()).map(str::to_owned)
        })?;
        self.controllers.iter().position(|machine| machine.name() == name)
    }

    /// Heals all faults: links, disks and syncs, and restarts all programs.
    pub(crate) fn heal(&mut self) {
        self.network.heal();
        for (which, machine) in self.controllers.iter_mut().chain(&mut self.workers).enumerate() {
            if let Some(shim) = machine.shim() {
                shim.heal();
            }
            if machine.disk().is_limited() {
                machine.disk().free(machine.host());
            }
            machine.resume();
            if (machine.ended().is_some() || !machine.runs()) && !self.out.contains_key(&which) {
                machine.start();
            }
        }
        for (which, through) in self.out.clone() {
            let joined = self.join(which, through);
            self.note(&format!("{} joins in the end: {joined:?}", self.controllers[which].name()));
        }
    }

    /// The time by a clock that never goes back.
    pub(crate) fn now(&self) -> Duration {
        self.env.clock.monotonic()
    }

    /// Adds an entry to the log of faults.
    pub(crate) fn note(&mut self, what: &str) {
        self.notes.push(format!("{:?} {what}", self.env.clock.monotonic()));
    }

    /// Polls until `holds` is true; the error of a timeout contains `what`.
    pub(crate) fn until(&self, what: &str, within: Duration, holds: impl Fn(&Self) -> bool) -> Result<(), String> {
        let deadline = self.env.clock.monotonic() + within;
        while !holds(self) {
            if self.env.clock.monotonic() > deadline {
                return Err(format!("not within {within:?}: {what}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Writes the log of faults and the stderr of all programs to files, for diagnosis.
    pub(crate) fn write_logs(&self, folder: &Path) {
        fs::write(folder.join("faults"), self.notes.join("\n") + "\n").expect("written");
        for machine in self.controllers.iter().chain(&self.workers) {
            fs::write(folder.join(format!("{}.log", machine.name())), machine.text()).expect("written");
        }
    }
}
