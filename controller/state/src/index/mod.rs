//! Derived, persistent indexes: kept with every change, rebuilt at load, never written down. With them, nothing scans.
//!
//! What a job or node adds to each index is a function of that job or node alone, so a change removes the old
//! contribution and adds the new one, and a rebuild is the sum over all. `INDEX-1` compares the two.

mod artifacts;
mod chains;
mod circuits;
mod held;
mod limits;
mod listing;
mod objects;
mod questions;
mod rooms;
mod routing;
mod runs;
mod shares;
mod spawns;
mod timer;
mod totals;
mod waiting;

use std::collections::BTreeMap;

use atlas_allocation::ConcurrencyPermits;
use atlas_types::{
    AgentVersion, ClusterTime, Inbox, Job, JobStatus, JoinToken, Journal, LimitKey, Namespace, Object, Question, Run,
    RunSpec, Share, WEIGHT_DEFAULT, label_bytes,
};

pub use self::held::HeldBack;
pub use self::objects::Routing;
pub use self::timer::{EXECUTION_GRACE, PREPARATION_MAX, Timer, TimerKey, TimerKind, job_timer};
pub use self::waiting::Class;

pub(crate) use self::circuits::CircuitKey;
pub(crate) use self::limits::limits_of_agent;
pub(crate) use self::rooms::{lends, places};
pub(crate) use self::spawns::Spawns;
use self::{
    artifacts::Artifacts, chains::Chains, circuits::Circuits, objects::Objects, questions::Questions, rooms::Rooms,
    routing::Undecided, runs::Runs, shares::Shares, timer::Timers, totals::Totals, waiting::Waiting,
};

use crate::map::{Map, Set};
use crate::node::NodeState;

/// All indexes and counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) waiting: Waiting,
    pub(crate) undecided: Undecided,
    pub(crate) runs: Runs,
    pub(crate) chains: Chains,
    pub(crate) timers: Timers,
    pub(crate) totals: Totals,
    pub(crate) rooms: Rooms,
    pub(crate) artifacts: Artifacts,
    pub(crate) spawns: Spawns,
    /// Running jobs by the value of their agent's key, carried ones left out; values without any are absent.
    pub(crate) running_by: Map<LimitKey, ConcurrencyPermits>,
    /// Token buckets by when they are full.
    pub(crate) buckets_full: Set<(ClusterTime, LimitKey)>,
    pub(crate) shares: Shares,
    pub(crate) circuits: Circuits,
    pub(crate) objects: Objects,
    pub(crate) questions: Questions,
    pub(crate) pending: u64,
    pub(crate) held: HeldBack,
    pub(crate) running: u64,
    /// Jobs of the cluster itself that have not ended; the two counts above leave them out.
    pub(crate) system: u64,
    /// Payload bytes of all jobs.
    pub(crate) job_bytes: u64,
    pub(crate) agents: u64,
    /// Bytes that the journals of jobs that have not ended reserve.
    pub(crate) journal_bytes: u64,
    /// Payload bytes of the messages in inboxes.
    pub(crate) inbox_bytes: u64,
    /// Contract bytes of all agent versions.
    pub(crate) agent_bytes: u64,
    /// Bytes of the labels of all jobs, and of the labels and other texts of all agent versions.
    pub(crate) text_bytes: u64,
}

impl Index {
    /// One job changed, appeared or went.
    pub(crate) fn job(&mut self, old: Option<&Job>, new: Option<&Job>) {
        self.add(old, new);
        new.or(old).into_iter().for_each(|job| self.share(&job.namespace));
    }

    /// The same without the share of its namespace, for many jobs before [`Self::share_all`].
    pub(crate) fn add(&mut self, old: Option<&Job>, new: Option<&Job>) {
        self.waiting.change(old, new);
        self.undecided.change(old, new);
        self.runs.change(old, new);
        self.chains.job(old, new);
        self.timers.job(old, new);
        self.artifacts.job(old, new);
        self.spawns.change(old, new);
        self.held.change(old, new);
        if let Some(old) = old {
            self.job_bytes -= old.inline_bytes();
            self.text_bytes -= label_bytes(&old.labels);
        }
        if let Some(new) = new {
            self.job_bytes += new.inline_bytes();
            self.text_bytes += label_bytes(&new.labels);
        }
        if old.map(|job| job.status) != new.map(|job| job.status) {
            self.count(old, false);
            self.count(new, true);
        }
        if let Some(job) = new.or(old) {
            self.total(&job.namespace, old, new);
        }
    }

    /// The share of each namespace with jobs.
    pub(crate) fn share_all(&mut self) {
        let namespaces: Vec<_> = self.totals.namespaces().cloned().collect();
        namespaces.iter().for_each(|namespace| self.share(namespace));
    }

    /// What a job of a namespace adds to its totals.
    fn total(&mut self, namespace: &Namespace, old: Option<&Job>, new: Option<&Job>) {
        let awaited = |job: &Job| self.spawns.awaited(job.id) > 0;
        self.totals.change(namespace, |total| {
            total.listing.change(old, new);
            if old.map(|job| job.status) != new.map(|job| job.status) {
                for (job, more) in old.map(|job| (job, false)).into_iter().chain(new.map(|job| (job, true))) {
                    if is_counted(job) {
                        total.count_running(job, more, awaited(job));
                    }
                    if !job.is_system() {
                        total.count_waiting(job, more);
                    }
                }
            }
            let active = |job: &&Job| !job.status.is_terminal();
            match (old.filter(active), new.filter(active)) {
                (None, Some(job)) => total.count_active(job, true),
                (Some(job), None) => total.count_active(job, false),
                // A redirect changes its agent.
                (Some(old), Some(new)) if old.pin != new.pin || old.agent != new.agent => {
                    total.count_active(old, false);
                    total.count_active(new, true);
                }
                _ => {}
            }
        });
    }

    /// The share of a namespace.
    pub(crate) fn share_of(&self, namespace: &Namespace) -> Share {
        // What the cluster itself asks comes first.
        if namespace.is_system() {
            return Share::default();
        }
        let total = self.totals.get(namespace);
        let running = total.map_or(0, |total| total.running.taken());
        let progress = total.and_then(|total| total.progress).unwrap_or(0);
        Share::new(running, self.weight(namespace), progress)
    }

    /// The weight of a namespace.
    pub(crate) fn weight(&self, namespace: &Namespace) -> u32 {
        self.objects.limits(namespace).and_then(|spec| spec.weight).unwrap_or(WEIGHT_DEFAULT)
    }

    /// Something may have changed on which the share of a namespace depends.
    fn share(&mut self, namespace: &Namespace) {
        let waits = self.waiting.of_namespace(namespace).next().is_some();
        let share = waits.then(|| self.share_of(namespace));
        if self.totals.get(namespace).and_then(|total| total.share) != share {
            let old = self.totals.change(namespace, |total| std::mem::replace(&mut total.share, share));
            self.shares.change(namespace, old, share);
        }
    }

    /// The progress of a namespace was noted, or forgotten.
    pub(crate) fn progress(&mut self, namespace: &Namespace, progress: Option<u64>) {
        let old = self.totals.change(namespace, |total| std::mem::replace(&mut total.progress, progress));
        self.shares.change_progress(namespace, old, progress);
        self.share(namespace);
    }

    /// One node changed, appeared or went.
    pub(crate) fn node(&mut self, old: Option<&NodeState>, new: Option<&NodeState>) {
        self.rooms.change(old, new);
        let circuit = |state: &NodeState| state.node.circuit;
        if let Some(id) = new.or(old).map(|state| &state.node.id) {
            let key = || CircuitKey::Node(id.clone());
            self.circuits.change(key, old.map(circuit).as_ref(), new.map(circuit).as_ref());
        }
    }

    /// One join token appeared, changed or went.
    pub(crate) fn join_token(&mut self, old: Option<&JoinToken>, new: Option<&JoinToken>) {
        self.timers.join_token(old, new);
    }

    /// One agent version appeared, changed or went.
    pub(crate) fn agent(&mut self, old: Option<&AgentVersion>, new: Option<&AgentVersion>) {
        self.artifacts.agent(old, new);
        self.timers.agent(old, new);
        if let Some(agent) = new.or(old) {
            let key = || CircuitKey::Agent(agent.namespace.clone(), agent.name.clone(), agent.version);
            self.circuits.change(key, old.map(|old| &old.circuit), new.map(|new| &new.circuit));
        }
        let bytes = |agent: Option<&AgentVersion>| agent.map_or(0, |agent| agent.contract.inline_bytes());
        self.agents = self.agents + u64::from(new.is_some()) - u64::from(old.is_some());
        self.agent_bytes = self.agent_bytes + bytes(new) - bytes(old);
        let texts = |agent: Option<&AgentVersion>| agent.map_or(0, agent_text_bytes);
        self.text_bytes = self.text_bytes + texts(new) - texts(old);
    }

    /// One journal appeared, changed or went.
    pub(crate) fn journal(&mut self, old: Option<&Journal>, new: Option<&Journal>) {
        self.artifacts.journal(old, new);
        let bytes = |journal: Option<&Journal>| journal.map_or(0, Journal::reserved_bytes);
        self.journal_bytes = self.journal_bytes + bytes(new) - bytes(old);
    }

    /// One inbox appeared, changed or went.
    pub(crate) fn inbox(&mut self, old: Option<&Inbox>, new: Option<&Inbox>) {
        let bytes = |inbox: Option<&Inbox>| inbox.map_or(0, Inbox::bytes);
        self.inbox_bytes = self.inbox_bytes + bytes(new) - bytes(old);
    }

    /// One run changed, appeared or went.
    pub(crate) fn run(&mut self, old: Option<&Run>, new: Option<&Run>) {
        self.artifacts.run(old, new);
        self.chains.run(old, new);
    }

    /// One question appeared, changed or went.
    pub(crate) fn question(&mut self, old: Option<&Question>, new: Option<&Question>) {
        self.questions.change(old, new);
        self.timers.question(old, new);
    }

    /// One object changed, appeared or went.
    pub(crate) fn object(&mut self, old: Option<&Object>, new: Option<&Object>) {
        self.artifacts.object(old, new);
        self.timers.object(old, new);
        self.objects.change(old, new);
        let is_namespace = |object: &&Object| object.key.kind.as_str() == "namespace";
        let named = old.or(new).filter(is_namespace).and_then(|object| Namespace::new(object.key.name.as_str()).ok());
        named.iter().for_each(|namespace| self.share(namespace));
    }

    /// One token bucket was used, or forgotten.
    pub(crate) fn bucket(&mut self, key: &LimitKey, old: Option<ClusterTime>, new: Option<ClusterTime>) {
        if let Some(full) = old {
            self.buckets_full.remove(&(full, key.clone()));
        }
        if let Some(full) = new {
            self.buckets_full.insert((full, key.clone()));
        }
    }

    /// A running job begins to wait for its children, or waits no longer: the limits of its agent and its namespace have room for one of those. One that a run
    /// carries takes no place, so it has none to lend.
    pub(crate) fn lend(&mut self, job: &Job, waits: bool) {
        if job.carried.is_some() {
            return;
        }
        let change = |permits: &mut ConcurrencyPermits| {
            if waits { permits.wait(job.depth()) } else { permits.resume(job.depth()) }
        };
        self.totals.change(&job.namespace, |total| {
            total.running_of.get_mut(&job.agent).into_iter().for_each(change);
            change(&mut total.running);
        });
        limits::key_of(job).and_then(|key| self.running_by.get_mut(&key)).into_iter().for_each(change);
        self.share(&job.namespace);
    }

    fn count(&mut self, job: Option<&Job>, more: bool) {
        let Some(job) = job else { return };
        let step = |count: &mut u64| if more { *count += 1 } else { *count -= 1 };
        match job.status {
            status if job.is_system() && status.is_terminal() => {}
            _ if job.is_system() => step(&mut self.system),
            JobStatus::Pending => step(&mut self.pending),
            JobStatus::Running => step(&mut self.running),
            JobStatus::Completed | JobStatus::Failed | JobStatus::Cancelled => {}
        }
        if let Some(key) = limits::key_of(job).filter(|_| is_counted(job)) {
            let permits = self.running_by.entry(key.clone()).or_default();
            totals::count_running(permits, job, more, self.spawns.awaited(job.id) > 0);
            if *permits == ConcurrencyPermits::default() {
                self.running_by.remove(&key);
            }
        }
    }
}

/// Whether a job counts as one that runs: it does, and no run carries it.
fn is_counted(job: &Job) -> bool {
    job.status == JobStatus::Running && (job.carried.is_none() || job.is_system())
}

/// Bytes of an agent version's texts beside its contract.
fn agent_text_bytes(agent: &AgentVersion) -> u64 {
    texts_bytes(&agent.labels, &agent.capabilities, &agent.spec)
}

/// Bytes of the texts that an agent version has beside its contract.
pub(crate) fn texts_bytes(labels: &BTreeMap<String, String>, capabilities: &[String], spec: &RunSpec) -> u64 {
    let lists = capabilities.iter().chain(&spec.demand.devices).map(String::len).sum::<usize>() as u64;
    let required = spec.requires.iter().map(|agent| agent.name.len() + agent.version.len()).sum::<usize>() as u64;
    let named = spec.secrets.iter().chain(&spec.model).chain(&spec.other_models).chain(&spec.servers);
    let named = named.map(String::len).sum::<usize>() as u64;
    label_bytes(labels) + label_bytes(&spec.demand.labels) + lists + required + named
}
