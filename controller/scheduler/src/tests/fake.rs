//! A cluster in plain maps without indexes: the reference for the real indexes.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atlas_allocation::{ConcurrencyPermits, Free};
use atlas_types::{
    AgentName, Allocation, Architecture, Attempt, Circuit, ClusterTime, Demand, Digest, FencingToken, Gpu, GrantLease,
    Job, JobId, JobStatus, Limit, LimitKey, Micros, Namespace, Node, NodeHealth, NodeId, Open, PerKey, Place, Probe,
    Rate, Reason, RunSpec, Share, Spawned, Timeouts, Timestamp, Turn,
};

use crate::{Cluster, LeaseView, NodeView, Shape, Strategy};

const GB: u64 = 1 << 30;

/// Whole gigabytes, as in the scripts.
pub(super) fn gb(bytes: u64) -> u64 {
    bytes / GB
}

/// Namespace, demand, depth, limits of the agent, and whether its jobs have parked.
type Class = (Namespace, Demand, u32, Vec<Limit>, bool, Option<AgentName>);

#[derive(Default, Clone)]
pub(super) struct Fake {
    pub(super) nodes: BTreeMap<NodeId, (Node, Free)>,
    pub(super) jobs: BTreeMap<JobId, Job>,
    classes: Vec<Class>,
    pub(super) allocations: BTreeMap<JobId, (NodeId, Allocation)>,
    lending: BTreeSet<JobId>,
    permits: BTreeMap<LimitKey, ConcurrencyPermits>,
    /// Weights other than 1.
    pub(super) weights: BTreeMap<Namespace, u32>,
    progress: u64,
    progress_of: BTreeMap<Namespace, u64>,
    /// The limit of the default namespace.
    pub(super) running_max: Option<u32>,
    pub(super) now: ClusterTime,
    pub(super) full: BTreeMap<LimitKey, ClusterTime>,
    /// Of agents of the default namespace.
    pub(super) circuits: BTreeMap<AgentName, Circuit>,
    /// How often a plan has opened a class.
    pub(super) opened: Cell<usize>,
}

impl Fake {
    /// Reads one sentence: `node NAME key=value…`, `job jN key=value…`, `run jN NODE key=value…`, `namespace LIMIT`, or
    /// `lend jN` for a job that waits for its child.
    pub(super) fn parse(&mut self, sentence: &str) {
        let words: Vec<&str> = sentence.split_whitespace().collect();
        match words[..] {
            ["node", name, ref rest @ ..] => self.add_node(node(name, rest)),
            ["job", name, ref rest @ ..] => self.add_job(job(name, rest)),
            ["weight", namespace, weight] => drop(self.weights.insert(name(namespace), number(weight))),
            ["namespace", limit] => self.running_max = Some(number(limit)),
            ["clock", seconds] => self.now = self.now.plus(Micros::from_secs(number(seconds))),
            ["circuit", agent, state] => drop(self.circuits.insert(agent.parse().expect("a name"), circuit(state))),
            ["failing", node, state] => {
                self.change_node(&node.parse().expect("a node name"), |node| node.circuit = circuit(state))
            }
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
        let namespace = self.jobs[&grant.job].namespace.clone();
        let share = self.share(&namespace);
        self.progress = self.progress.max(share.progress);
        let after = share.after_start(self.weight(&namespace), self.progress);
        self.progress_of.insert(namespace, after.progress);
        let job = self.jobs.get_mut(&grant.job).expect("a job");
        assert_eq!(job.status, JobStatus::Pending);
        (job.status, job.reason) = (JobStatus::Running, Reason::Running);
        for limit in own_limits(job) {
            let Some(rate) = limit.rate else { continue };
            let full = self.full.entry(limit.key).or_default();
            assert!(rate.open_at(*full) <= self.now, "more often than the rate says");
            *full = rate.after_start(*full, self.now);
        }
        let is_guarded = job.namespace == Namespace::default_namespace()
            && job.spec.as_ref().is_some_and(|spec| spec.failures_max.is_some());
        if let Some(circuit) = self.circuits.get_mut(&job.agent).filter(|_| is_guarded) {
            assert!(circuit.admits(), "the circuit of {} is open", job.agent);
            circuit.start(FencingToken(job.id.0));
        }
        let digest = job.pin.as_ref().expect("a pin").digest;
        let (node, free) = self.nodes.get_mut(&grant.node).expect("a node");
        assert!(free.take(&grant.allocation, job.depth()), "more than {} has", node.id);
        assert_eq!(free.places_owed(), [0; 2], "more than {} has", node.id);
        assert!(node.circuit.admits(), "the circuit of {} is open", node.id);
        node.circuit.start(FencingToken(grant.job.0));
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

    /// Whether the limit of its key or a rate holds a job back.
    pub(super) fn is_held(&self, job: &Job) -> bool {
        own_limits(job).into_iter().any(|limit| {
            let running = self.jobs.values().filter(|other| other.status == JobStatus::Running);
            let same = running.filter(|other| value_key(other).as_ref() == Some(&limit.key)).count();
            let full = limit.key.value.is_some() && limit.running_max.is_some_and(|most| same >= most as usize);
            full || limit.rate.is_some_and(|rate| rate.open_at(self.full_at(&limit.key)) > self.now)
        })
    }

    /// Whether any limit holds a job back.
    pub(super) fn is_at_a_limit(&self, job: &Job) -> bool {
        let full = |limit: &Limit| crate::choice::is_full(limit, self.permits(&limit.key), job.depth()).is_some();
        self.is_held(job) || self.limits(job).iter().any(full)
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
        self.permits.clear();
        for job in self.jobs.values().filter(|job| job.status == JobStatus::Running) {
            for key in [of_namespace(&job.namespace), limit_key(job, None)].into_iter().chain(value_key(job)) {
                let permits = self.permits.entry(key).or_default();
                permits.add(job.depth());
                if self.lending.contains(&job.id) {
                    permits.wait(job.depth());
                }
            }
        }
    }
}

/// An open circuit: `open` for a minute, `ready` for a probe, or with one that `runs`.
fn circuit(state: &str) -> Circuit {
    let probe = match state {
        "ready" => Probe::Ready,
        "runs" => Probe::Runs(FencingToken(9)),
        _ => Probe::At(ClusterTime(60_000_000)),
    };
    let open = Open { since: Timestamp(0), pause: Circuit::PAUSE, probe };
    Circuit { failures: 3, open: Some(open), ..Circuit::default() }
}

fn waits(job: &Job) -> bool {
    job.status == JobStatus::Pending && matches!(job.reason, Reason::Queued | Reason::Lost)
}

fn class(job: &Job) -> Class {
    let spec = job.spec.as_ref().expect("a spec");
    (
        job.namespace.clone(),
        spec.demand.clone(),
        job.depth(),
        own_limits(job),
        job.has_parked(),
        spec.failures_max.map(|_| job.agent.clone()),
    )
}

fn of_namespace(namespace: &Namespace) -> LimitKey {
    LimitKey { namespace: namespace.clone(), agent: None, value: None }
}

fn limit_key(job: &Job, value: Option<&str>) -> LimitKey {
    LimitKey { agent: Some(job.agent.clone()), value: value.map(Into::into), ..of_namespace(&job.namespace) }
}

/// The value of the label `k`.
fn value_key(job: &Job) -> Option<LimitKey> {
    job.spec.as_ref()?.per_key.as_ref()?;
    Some(limit_key(job, Some(job.labels.get("k")?)))
}

fn own_limits(job: &Job) -> Vec<Limit> {
    let spec = job.spec.as_ref().expect("a spec");
    let rate = |rate: Option<Rate>| rate.filter(|_| !job.has_parked());
    let mut limits = Vec::new();
    if spec.concurrency.is_some() || spec.rate.is_some() {
        limits.push(Limit { key: limit_key(job, None), running_max: spec.concurrency, rate: rate(spec.rate) });
    }
    if let (Some(per_key), Some(key)) = (&spec.per_key, value_key(job)) {
        limits.push(Limit { key, running_max: per_key.concurrency, rate: rate(per_key.rate) });
    }
    limits
}

impl Cluster for Fake {
    type Class = Class;

    fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        let waiting: BTreeSet<_> = self.classes.iter().map(|(namespace, ..)| namespace).collect();
        let mut namespaces: Vec<_> = waiting.into_iter().collect();
        namespaces.sort_by_key(|namespace| self.share(namespace));
        namespaces.into_iter()
    }

    fn share(&self, namespace: &Namespace) -> Share {
        let running = self.permits.get(&of_namespace(namespace)).map_or(0, ConcurrencyPermits::taken);
        let progress = self.progress_of.get(namespace).copied().unwrap_or(0);
        Share::new(running, self.weight(namespace), progress)
    }

    fn weight(&self, namespace: &Namespace) -> u32 {
        self.weights.get(namespace).copied().unwrap_or(1)
    }

    fn progress(&self) -> u64 {
        self.progress
    }

    fn classes<'a>(&'a self, namespace: &'a Namespace) -> impl Iterator<Item = &'a Class> + 'a {
        self.classes.iter().filter(move |(of, ..)| of == namespace)
    }

    fn shapes(&self) -> impl Iterator<Item = Shape<'_>> {
        self.classes.iter().map(|(_, demand, depth, _, patient, _)| Shape { demand, depth: *depth, patient: *patient })
    }

    fn turn(&self, job: &Job) -> Turn {
        Turn::of(job, None)
    }

    fn waiting<'a>(&'a self, wanted: &'a Class) -> impl Iterator<Item = &'a Job> + 'a {
        self.opened.set(self.opened.get() + 1);
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

    fn leases(&self, node: &NodeId) -> impl Iterator<Item = LeaseView<'_>> {
        let on = self.allocations.iter().filter(move |(_, (on, _))| on == node);
        on.map(|(job, (_, allocation))| LeaseView {
            job: &self.jobs[job],
            allocation,
            lends: self.lending.contains(job),
        })
    }

    fn limits(&self, job: &Job) -> Vec<Limit> {
        let most = self.running_max.filter(|_| job.namespace == Namespace::default_namespace());
        let limit = most.map(|most| Limit { key: of_namespace(&job.namespace), running_max: Some(most), rate: None });
        own_limits(job).into_iter().chain(limit).collect()
    }

    fn permits(&self, key: &LimitKey) -> Option<&ConcurrencyPermits> {
        self.permits.get(key)
    }

    fn circuit(&self, job: &Job) -> Option<&Circuit> {
        job.spec.as_ref()?.failures_max?;
        self.circuits.get(&job.agent).filter(|_| job.namespace == Namespace::default_namespace())
    }

    fn now(&self) -> ClusterTime {
        self.now
    }

    fn full_at(&self, key: &LimitKey) -> ClusterTime {
        self.full.get(key).copied().unwrap_or_default()
    }

    fn opens_at(&self, key: &LimitKey, rate: Rate) -> ClusterTime {
        rate.open_at(self.full_at(key))
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

fn name(text: &str) -> Namespace {
    Namespace::new(text).expect("a name")
}

fn pair(text: &str) -> (String, String) {
    let (name, value) = text.split_once(':').expect("name:value");
    (name.to_owned(), value.to_owned())
}

fn architecture(text: &str) -> Architecture {
    if text == "arm64" { Architecture::Arm64 } else { Architecture::X86_64 }
}

/// `JOBS/SECONDS/BURST`.
fn read_rate(text: &str) -> Rate {
    let numbers: Vec<u32> = text.split('/').map(number).collect();
    Rate::new(numbers[0], numbers[1].into(), Some(numbers[2]))
}

fn digest(text: &str) -> Digest {
    atlas_kit::digest(number(&text[1..]))
}

pub(super) fn node(name: &str, words: &[&str]) -> Node {
    let mut node = atlas_kit::node(name).ready();
    let inventory = Arc::make_mut(&mut node.inventory);
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
            ("failing", value) => node.circuit = circuit(value),
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
    let mut namespace = Namespace::default_namespace();
    let mut priority = 0;
    let mut reason = Reason::Queued;
    let (mut limit, mut rate, mut per_key, mut failures_max) = (None, None, None, None);
    let mut labels = BTreeMap::new();
    let mut spawned = None;
    let mut parks = 0;
    let mut demand = Demand::default();
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("depth", value) => spawned = Some(Spawned { by: JobId(0), depth: number(value), awaited: true }),
            ("ns", value) => namespace = self::name(value),
            ("agent", value) => agent = value,
            ("digest", value) => pin = digest(value),
            ("prio", value) => priority = number(value),
            ("limit", value) => limit = Some(number(value)),
            ("rate", value) => rate = Some(read_rate(value)),
            ("failures", value) => failures_max = Some(number(value)),
            ("k", value) => {
                labels.insert("k".to_owned(), value.to_owned());
                per_key.get_or_insert(PerKey { key: "label:k".into(), concurrency: None, rate: None });
            }
            ("k-limit", value) => per_key.as_mut().expect("k first").concurrency = Some(number(value)),
            ("k-rate", value) => per_key.as_mut().expect("k first").rate = Some(read_rate(value)),
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
            ("python", _) => demand.python = true,
            ("node.js", _) => demand.nodejs = true,
            ("pin", value) => demand.node = Some(value.parse().expect("a node name")),
            _ => panic!("no such property of a job: {word}"),
        }
    }
    let timeouts = Timeouts { startup: Micros::from_secs(60), ..atlas_kit::spec().timeouts };
    let spec = RunSpec { demand, timeouts, concurrency: limit, rate, per_key, failures_max, ..atlas_kit::spec() };
    let job = atlas_kit::job(id.0).of(agent).pinned_to(atlas_kit::pin(pin)).with_priority(priority);
    Job {
        namespace,
        spec: Some(Arc::new(spec)),
        reason,
        attempt: Attempt(parks),
        parks,
        labels: Arc::new(labels),
        spawned,
        ..job.pending()
    }
}
