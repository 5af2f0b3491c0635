//! A cluster in plain maps without indexes: the reference for the real indexes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atlas_allocation::{ConcurrencyPermits, Free};
use atlas_types::{
    AgentName, AgentPin, Allocation, Architecture, Attempt, BootId, ClusterTime, Demand, Digest, Door, Effects, Gpu,
    GrantLease, Inventory, Job, JobId, JobStatus, Micros, Namespace, Node, NodeHealth, NodeId, Payload, Place,
    Principal, Reason, RetryRule, RunSpec, Seq, Spawned, Timeouts, Timestamp, Version,
};

use crate::{Cluster, Held, NodeView, Strategy};

const GB: u64 = 1 << 30;

/// Whole gigabytes, as in the scripts.
pub(super) fn gb(bytes: u64) -> u64 {
    bytes / GB
}

/// Demand, depth, limited agent, and whether its jobs have parked.
type Class = (Demand, u32, Option<(AgentName, u32)>, bool);

#[derive(Default, Clone)]
pub(super) struct Fake {
    pub(super) nodes: BTreeMap<NodeId, (Node, Free)>,
    pub(super) jobs: BTreeMap<JobId, Job>,
    classes: Vec<Class>,
    pub(super) allocations: BTreeMap<JobId, (NodeId, Allocation)>,
    lending: BTreeSet<JobId>,
    running: BTreeMap<AgentName, ConcurrencyPermits>,
    running_in: ConcurrencyPermits,
    /// The limit of the only namespace.
    pub(super) running_max: Option<u32>,
}

impl Fake {
    /// Reads one sentence: `node NAME key=value…`, `job jN key=value…`, `run jN NODE key=value…`, `namespace LIMIT`, or
    /// `lend jN` for a job that waits for its child.
    pub(super) fn parse(&mut self, sentence: &str) {
        let words: Vec<&str> = sentence.split_whitespace().collect();
        match words[..] {
            ["node", name, ref rest @ ..] => self.add_node(node(name, rest)),
            ["job", name, ref rest @ ..] => self.add_job(job(name, rest)),
            ["namespace", limit] => self.running_max = Some(number(limit)),
            ["lend", name] => {
                let job = self.job(name).clone();
                let (node, allocation) = &self.allocations[&job.id];
                let (_, free) = self.nodes.get_mut(node).expect("a node");
                free.change_permits(allocation.place, |permits| permits.wait(job.depth()));
                self.lending.insert(job.id);
                self.index();
            }
            ["run", name, on, ref rest @ ..] => {
                let job = job(name, rest);
                let on: NodeId = on.parse().expect("a node name");
                let (node, free) = &self.nodes[&on];
                let demand = &job.spec.as_ref().expect("a spec").demand;
                let allocation =
                    crate::allocate(demand, job.depth(), NodeView { node, free }).expect("the script leaves room");
                let grant = GrantLease { job: job.id, node: on, epoch: node.epoch, allocation };
                self.add_job(job);
                self.place(&grant);
            }
            _ => panic!("no such sentence: {sentence}"),
        }
    }

    pub(super) fn add_node(&mut self, node: Node) {
        let free = Free::of(&node.inventory);
        self.nodes.insert(node.id.clone(), (node, free));
    }

    pub(super) fn add_job(&mut self, job: Job) {
        self.jobs.insert(job.id, job);
        self.index();
    }

    pub(super) fn job(&self, name: &str) -> &Job {
        &self.jobs[&JobId(name[1..].parse().expect("jN"))]
    }

    /// Applies a grant as the state does.
    pub(super) fn place(&mut self, grant: &GrantLease) {
        let job = self.jobs.get_mut(&grant.job).expect("a job");
        assert_eq!(job.status, JobStatus::Pending);
        (job.status, job.reason) = (JobStatus::Running, Reason::Running);
        let digest = job.pin.as_ref().expect("a pin").digest;
        let (node, free) = self.nodes.get_mut(&grant.node).expect("a node");
        assert!(free.take(&grant.allocation, job.depth()), "more than {} has", node.id);
        assert_eq!(free.places_owed(), [0; 2], "more than {} has", node.id);
        if let Some(idle) = node.warm.get_mut(&digest) {
            *idle = idle.saturating_sub(1);
        }
        self.allocations.insert(grant.job, (grant.node.clone(), grant.allocation.clone()));
        self.index();
    }

    /// Ends a job and frees its resources.
    pub(super) fn remove(&mut self, id: JobId) {
        let depth = self.jobs.remove(&id).map_or(0, |job| job.depth());
        if let Some((node, allocation)) = self.allocations.remove(&id) {
            let lent = self.lending.remove(&id);
            let (_, free) = self.nodes.get_mut(&node).expect("a node");
            free.give(&allocation);
            free.change_permits(allocation.place, |permits| permits.remove(depth, lent));
        }
        self.index();
    }

    /// Changes a node and counts again what its leases leave free.
    pub(super) fn change_node(&mut self, id: &NodeId, change: impl FnOnce(&mut Node)) {
        let (node, free) = self.nodes.get_mut(id).expect("a node");
        change(node);
        *free = Free::of(&node.inventory);
        for (job, (_, allocation)) in self.allocations.iter().filter(|(_, (on, _))| on == id) {
            let depth = self.jobs[job].depth();
            free.take(allocation, depth);
            if self.lending.contains(job) {
                free.change_permits(allocation.place, |permits| permits.wait(depth));
            }
        }
    }

    /// Changes jobs, of which none runs.
    pub(super) fn change_jobs(&mut self, change: impl FnMut(&mut Job)) {
        self.jobs.values_mut().filter(|job| job.status == JobStatus::Pending).for_each(change);
        self.index();
    }

    fn index(&mut self) {
        let mut waiting: Vec<&Job> = self.jobs.values().filter(|job| waits(job)).collect();
        waiting.sort_by_key(|job| (Reverse(job.priority), job.queue_seq));
        let mut classes = Vec::new();
        for class in waiting.into_iter().map(class) {
            if !classes.contains(&class) {
                classes.push(class);
            }
        }
        self.classes = classes;
        self.running.clear();
        self.running_in = ConcurrencyPermits::default();
        for job in self.jobs.values().filter(|job| job.status == JobStatus::Running) {
            for permits in [self.running.entry(job.agent.clone()).or_default(), &mut self.running_in] {
                permits.add(job.depth());
                if self.lending.contains(&job.id) {
                    permits.wait(job.depth());
                }
            }
        }
    }
}

fn waits(job: &Job) -> bool {
    job.status == JobStatus::Pending && matches!(job.reason, Reason::Queued | Reason::Lost)
}

fn class(job: &Job) -> Class {
    let spec = job.spec.as_ref().expect("a spec");
    let limit = spec.concurrency.map(|limit| (job.agent.clone(), limit));
    (spec.demand.clone(), job.depth(), limit, job.has_parked())
}

impl Cluster for Fake {
    type Class = Class;

    fn classes(&self) -> impl Iterator<Item = &Class> {
        self.classes.iter()
    }

    fn waiting<'a>(&'a self, wanted: &'a Class) -> impl Iterator<Item = &'a Job> + 'a {
        let mut jobs: Vec<&Job> = self.jobs.values().filter(|job| waits(job) && class(job) == *wanted).collect();
        jobs.sort_by_key(|job| (Reverse(job.priority), job.queue_seq));
        jobs.into_iter()
    }

    fn ahead(&self, job: &Job, limit: usize) -> Option<usize> {
        let class = class(job);
        let ahead = self.waiting(&class).take(limit).position(|other| other.id == job.id);
        if waits(job) { ahead } else { None }
    }

    fn class_len(&self, job: &Job) -> Option<usize> {
        waits(job).then(|| self.waiting(&class(job)).count())
    }

    fn leases(&self, node: &NodeId) -> impl Iterator<Item = Held<'_>> {
        let on = self.allocations.iter().filter(move |(_, (on, _))| on == node);
        on.map(|(job, (_, allocation))| Held { job: &self.jobs[job], allocation, lends: self.lending.contains(job) })
    }

    fn running(&self, _: &Namespace, agent: &AgentName) -> Option<&ConcurrencyPermits> {
        self.running.get(agent)
    }

    fn running_in(&self, _: &Namespace) -> Option<&ConcurrencyPermits> {
        Some(&self.running_in)
    }

    fn running_max(&self, _: &Namespace) -> Option<u32> {
        self.running_max
    }

    fn lending(&self) -> impl Iterator<Item = NodeView<'_>> {
        self.nodes().filter(|view| view.free.lends())
    }

    fn room<'a>(&'a self, demand: &'a Demand, strategy: Strategy) -> impl Iterator<Item = NodeView<'a>> + 'a {
        let mut nodes: Vec<NodeView<'a>> = self.nodes().collect();
        nodes.sort_by_key(|view| view.free.places(demand.place).free);
        if strategy == Strategy::Spread {
            nodes.sort_by_key(|view| Reverse(view.free.places(demand.place).free));
        }
        nodes.into_iter()
    }

    fn warm<'a>(&'a self, digest: &'a Digest) -> impl Iterator<Item = (NodeView<'a>, u32)> + 'a {
        self.nodes().filter_map(|view| Some((view, *view.node.warm.get(digest)?)))
    }

    fn node(&self, id: &NodeId) -> Option<NodeView<'_>> {
        self.nodes.get(id).map(|(node, free)| NodeView { node, free })
    }

    fn nodes(&self) -> impl Iterator<Item = NodeView<'_>> {
        self.nodes.values().map(|(node, free)| NodeView { node, free })
    }

    fn capable<'a>(&'a self, _demand: &'a Demand) -> impl Iterator<Item = NodeView<'a>> + 'a {
        self.nodes()
    }
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().ok().unwrap_or_else(|| panic!("not a number: {text}"))
}

fn pair(text: &str) -> (String, String) {
    let (name, value) = text.split_once(':').expect("name:value");
    (name.to_owned(), value.to_owned())
}

fn architecture(text: &str) -> Architecture {
    if text == "arm64" { Architecture::Arm64 } else { Architecture::X86_64 }
}

fn digest(text: &str) -> Digest {
    Digest([number(&text[1..]); 32])
}

pub(super) fn node(name: &str, words: &[&str]) -> Node {
    let name = name.parse().expect("a node name");
    let mut node = Node::new(name, BootId(1), Inventory::default(), Timestamp(1));
    let inventory = &mut node.inventory;
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("places", value) => inventory.places = number(value),
            ("llm", value) => inventory.llm_places = number(value),
            ("cores", value) => inventory.cores = number(value),
            ("mem", value) => inventory.memory_bytes = number::<u64>(value) * GB,
            ("gpu", value) => inventory.gpus = value.split(',').zip(0..).map(gpu).collect(),
            ("broken", value) => inventory.gpus[number::<usize>(value)].healthy = false,
            ("arch", value) => inventory.architecture = Some(architecture(value)),
            ("dev", value) => inventory.devices.push(value.to_owned()),
            ("label", value) => inventory.labels.extend([pair(value)]),
            ("given", value) => node.operator_labels.extend([pair(value)]),
            ("declared", _) => inventory.declared = true,
            ("unchecked", _) => inventory.unchecked = true,
            ("down", _) => node.health = NodeHealth::Down,
            ("cordoned", _) => node.cordoned = true,
            ("draining", _) => node.draining = true,
            ("warm", value) => {
                let (package, idle) = value.split_once('*').expect("dN*IDLE");
                node.warm.insert(digest(package), number(idle));
            }
            _ => panic!("no such property of a node: {word}"),
        }
    }
    node
}

fn gpu((memory, index): (&str, u32)) -> Gpu {
    let memory_bytes = number::<u64>(memory) * GB;
    Gpu {
        index,
        uuid: String::new(),
        vendor: "nvidia".into(),
        model: "X".into(),
        memory_bytes,
        mig_profile: None,
        healthy: true,
    }
}

pub(super) fn job(name: &str, words: &[&str]) -> Job {
    let id = JobId(number(&name[1..]));
    let mut agent = "worker";
    let mut pin = digest("d1");
    let mut priority = 0;
    let mut reason = Reason::Queued;
    let mut limit = None;
    let mut spawned = None;
    let mut parks = 0;
    let mut demand = Demand::default();
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("depth", value) => spawned = Some(Spawned { by: JobId(0), depth: number(value), awaited: true }),
            ("agent", value) => agent = value,
            ("digest", value) => pin = digest(value),
            ("prio", value) => priority = number(value),
            ("limit", value) => limit = Some(number(value)),
            ("backoff", value) => {
                reason = Reason::Backoff { until: ClusterTime::default().plus(Micros::from_secs(number(value))) };
            }
            ("parks", value) => parks = number(value),
            ("doubt", _) => reason = Reason::InDoubt,
            ("cores", value) => demand.cores = number(value),
            ("mem", value) => demand.memory_bytes = number::<u64>(value) * GB,
            ("gpus", value) => demand.gpus = number(value),
            ("vram", value) => demand.vram_bytes = number::<u64>(value) * GB,
            ("arch", value) => demand.architecture = Some(architecture(value)),
            ("dev", value) => demand.devices.push(value.to_owned()),
            ("label", value) => demand.labels.extend([pair(value)]),
            ("llm", _) => demand.place = Place::Llm,
            ("pin", value) => demand.node = Some(value.parse().expect("a node name")),
            _ => panic!("no such property of a job: {word}"),
        }
    }
    Job {
        namespace: Namespace::default_namespace(),
        id,
        agent: agent.parse().expect("an agent name"),
        pin: Some(AgentPin { version: Version { major: 1, minor: 0, patch: 0 }, digest: pin }),
        spec: Some(Arc::new(spec(demand, limit))),
        status: JobStatus::Pending,
        reason,
        priority,
        queue_seq: id.0,
        submitted_seq: Seq(1),
        input: Payload::inline(b"{}"),
        output: None,
        failure: None,
        created_at: Timestamp(1),
        started_at: Timestamp::NOT_YET,
        completed_at: Timestamp::NOT_YET,
        queued_at: ClusterTime::default(),
        warmup: Micros::default(),
        execution: Micros::default(),
        warm: false,
        attempt: Attempt(parks),
        lease: None,
        carried: None,
        bearer: false,
        budget_nanodollars: None,
        step: None,
        context: None,
        fork: None,
        questions: atlas_types::QuestionRule::Fail,
        route: None,
        journal: None,
        parks,
        used: Micros::default(),
        parked: None,
        slept_until: Timestamp::NOT_YET,
        retry_count: 0,
        node: None,
        original: None,
        successor: None,
        metadata: Arc::from(*b"{}"),
        labels: Arc::default(),
        execution_timeout: None,
        principal: Principal::local(),
        door: Door::Local,
        request_id: None,
        trace: None,
        stream: None,
        spawned,
    }
}

fn spec(demand: Demand, concurrency: Option<u32>) -> RunSpec {
    RunSpec {
        demand,
        effects: Effects::Idempotent,
        max_attempts: 3,
        concurrency,
        retry: RetryRule::default(),
        timeouts: Timeouts { queue: None, startup: Micros::from_secs(60), execution: Micros::from_secs(60) },
        carried: false,
        spawns: false,
        requires: Vec::new(),
        secrets: Vec::new(),
        model: None,
        servers: Vec::new(),
    }
}
