//! A cluster with some changes, which the planner reads like the real one.
//!
//! It has the job in question, the jobs before it, and those of other namespaces, because later jobs of its namespace take nothing from it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atlas_allocation::{ConcurrencyPermits, Free, GpuFree};
use atlas_types::{
    AgentName, BootId, Circuit, ClusterTime, Demand, Digest, Gpu, Inventory, Job, JobId, JobStatus, Limit, LimitKey,
    Namespace, Node, NodeHealth, NodeId, Place, Rate, Reason, RunSpec, Share, Timestamp, Turn,
};

use crate::change::{Ask, Change, More};
use crate::cluster::{Cluster, LeaseView, NodeView, Shape};
use crate::plan::{Strategy, plan};

/// With more classes before the job, no plan is made, and the job is taken as not started.
const CLASSES_MAX: usize = 2_048;
/// The placements after which a plan is given up, and the job is taken as not started.
const PLACEMENTS_MAX: usize = 512;

/// A cluster with changes, and one job that asks whether it would start.
pub(crate) struct WhatIf<'c, C: Cluster> {
    base: &'c C,
    job: Job,
    /// The namespaces with waiting jobs, and their classes that are planned with the job.
    line: Vec<(Namespace, Vec<Class<'c, C::Class>>)>,
    /// Changed and added nodes.
    nodes: BTreeMap<NodeId, (Node, Free)>,
    permits: BTreeMap<LimitKey, ConcurrencyPermits>,
    /// Another limit of the job's namespace.
    running_max: Option<u32>,
    /// The circuit of the job's agent version, if that is another one.
    circuit: Option<Circuit>,
    now: ClusterTime,
    ended: BTreeSet<JobId>,
    /// Jobs of other namespaces wait.
    alone: bool,
}

/// A limit on running jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limited {
    Agent,
    Key,
    Namespace,
}

impl Limited {
    pub(crate) fn of(key: &LimitKey) -> Self {
        match (&key.agent, &key.value) {
            (None, _) => Self::Namespace,
            (Some(_), None) => Self::Agent,
            (Some(_), Some(_)) => Self::Key,
        }
    }
}

/// A class that is planned with the job, or the job by itself.
pub(crate) enum Class<'c, K> {
    /// Of another namespace: all of it, because shares decide.
    Other(&'c K),
    Ahead(&'c K),
    Asked,
}

impl<K> Clone for Class<'_, K> {
    fn clone(&self) -> Self {
        match self {
            Self::Other(class) => Self::Other(class),
            Self::Ahead(class) => Self::Ahead(class),
            Self::Asked => Self::Asked,
        }
    }
}

impl<C: Cluster> Clone for WhatIf<'_, C> {
    fn clone(&self) -> Self {
        let Self { base, job, line, nodes, permits, running_max, circuit, now, ended, alone } = self;
        Self {
            base,
            job: job.clone(),
            line: line.clone(),
            nodes: nodes.clone(),
            permits: permits.clone(),
            running_max: *running_max,
            circuit: *circuit,
            now: *now,
            ended: ended.clone(),
            alone: *alone,
        }
    }
}

impl<'c, C: Cluster> WhatIf<'c, C> {
    /// The cluster as it is, where nothing but capacity holds the job back.
    pub(crate) fn new(base: &'c C, job: &Job) -> Self {
        let job = Job { status: JobStatus::Pending, reason: Reason::Queued, ..job.clone() };
        let (nodes, permits, now) = (BTreeMap::new(), BTreeMap::new(), base.now());
        let (line, ended) = (Vec::new(), BTreeSet::new());
        let mut what_if =
            Self { base, job, line, nodes, permits, running_max: None, circuit: None, now, ended, alone: false };
        what_if.line_up();
        what_if
    }

    pub(crate) fn job(&self) -> &Job {
        &self.job
    }

    /// Whether the planner would start the job now.
    pub(crate) fn starts(&self) -> bool {
        if self.is_too_long() {
            return false;
        }
        let plan = plan(self, Strategy::BinPack, PLACEMENTS_MAX);
        plan.placements.iter().any(|placement| placement.grant.job == self.job.id)
    }

    /// Whether jobs of other namespaces may start before it.
    pub(crate) fn has_others(&self) -> bool {
        !self.alone && self.line.len() > 1
    }

    fn is_too_long(&self) -> bool {
        self.line.iter().map(|(_, classes)| classes.len()).sum::<usize>() > CLASSES_MAX
    }

    /// The lowest priority with which the job comes before all others of its namespace.
    pub(crate) fn first_priority(&self) -> Option<i64> {
        let own = self.base.namespaces().find(|namespace| **namespace == self.job.namespace)?;
        let first = self.base.classes(own).next().and_then(|class| self.base.waiting(class).next())?;
        // Where jobs age, one priority more may not be enough.
        let mut priorities = (0..8).map(|bit| first.priority.saturating_add(1 << bit));
        priorities.find(|priority| {
            let raised = Job { priority: *priority, ..self.job.clone() };
            self.base.turn(&raised) < self.base.turn(first)
        })
    }

    /// The limit of one kind that holds for the job.
    pub(crate) fn limit(&self, limited: Limited) -> Option<Limit> {
        self.limits(&self.job).into_iter().find(|limit| Limited::of(&limit.key) == limited)
    }

    /// Whether a limit counts a job.
    pub(crate) fn counts(&self, key: &LimitKey, job: &Job) -> bool {
        let of_agent = |agent: &AgentName| job.namespace == key.namespace && job.agent == *agent;
        match (&key.agent, &key.value) {
            (None, _) => job.namespace == key.namespace,
            (Some(agent), None) => of_agent(agent),
            (Some(agent), Some(_)) => of_agent(agent) && self.base.limits(job).iter().any(|limit| limit.key == *key),
        }
    }

    /// Whether another job that the same limit counts is before it.
    pub(crate) fn has_sibling_ahead(&self, key: &LimitKey) -> bool {
        let same = |job: &Job| self.counts(key, job);
        let mut ahead = self.line.iter().flat_map(|(_, classes)| classes).filter_map(|class| match class {
            Class::Ahead(class) => self.base.waiting(class).next(),
            Class::Other(_) | Class::Asked => None,
        });
        self.is_too_long() || ahead.any(|job| job.id != self.job.id && same(job))
    }

    /// Finds the classes of other namespaces, and those before the job in its own.
    fn line_up(&mut self) {
        let base = self.base;
        let own = base.turn(&self.job);
        let before = |class: &&'c C::Class| base.waiting(class).next().is_some_and(|job| base.turn(job) < own);
        let mut line = vec![(self.job.namespace.clone(), Vec::new())];
        let mut left = CLASSES_MAX + 1;
        for namespace in base.namespaces().filter(|namespace| !self.alone || **namespace == self.job.namespace) {
            if *namespace == self.job.namespace {
                line[0].1 = base.classes(namespace).take_while(before).take(left).map(Class::Ahead).collect();
            } else {
                let classes: Vec<_> = base.classes(namespace).take(left).map(Class::Other).collect();
                left -= classes.len();
                line.push((namespace.clone(), classes));
            }
        }
        line[0].1.push(Class::Asked);
        self.line = line;
    }

    /// Ends a running job, which frees what it holds of its node.
    pub(crate) fn end(&mut self, node: &NodeId, job: JobId) {
        let Some(held) = self.base.leases(node).find(|held| held.job.id == job) else { return };
        let namespace = LimitKey { namespace: held.job.namespace.clone(), agent: None, value: None };
        let agent = LimitKey { agent: Some(held.job.agent.clone()), ..namespace.clone() };
        let value = self.base.limits(held.job).into_iter().map(|limit| limit.key).find(|key| key.value.is_some());
        for key in [namespace, agent].into_iter().chain(value) {
            let mut permits = self.permits(&key).cloned().unwrap_or_default();
            permits.remove(held.job.depth(), held.lends);
            self.permits.insert(key, permits);
        }
        self.ended.insert(job);
        self.recount(node);
    }

    /// Makes a change. Jobs end with [`Self::end`]; the other causes why a job waits do not count here.
    pub(crate) fn make(&mut self, change: &Change) {
        match change {
            Change::Time { .. }
            | Change::Wake
            | Change::Allow
            | Change::Approve
            | Change::Resolve
            | Change::End { .. } => {}
            Change::OthersWait => {
                self.alone = true;
                self.line_up();
            }
            Change::Priority { at_least } => {
                self.job.priority = *at_least;
                self.line_up();
            }
            Change::Limit { at_least } => self.spec(|spec| spec.concurrency = Some(*at_least)),
            Change::NamespaceLimit { at_least } => self.running_max = Some(*at_least),
            Change::KeyLimit { at_least } => self.spec(|spec| {
                if let Some(per_key) = &mut spec.per_key {
                    per_key.concurrency = Some(*at_least);
                }
            }),
            Change::Resume { .. } => self.circuit = Some(Circuit::default()),
            Change::Probe { .. } => {
                self.circuit = self.base.circuit(&self.job).copied();
                self.circuit.iter_mut().for_each(Circuit::end_pause);
            }
            Change::Rate { wait, .. } => self.now = self.now.plus(*wait),
            Change::Ask { at_most } => self.spec(|spec| match *at_most {
                Ask::Cores(cores) => spec.demand.cores = cores,
                Ask::MemoryBytes(bytes) => spec.demand.memory_bytes = bytes,
                Ask::VramBytes(bytes) => spec.demand.vram_bytes = bytes,
            }),
            Change::Open { node, .. } => self.change(node, |node, _| {
                node.health = NodeHealth::Ready;
                (node.cordoned, node.draining, node.circuit) = (false, false, Circuit::default());
            }),
            Change::Label { node, labels } => {
                self.change(node, |node, _| node.operator_labels.extend(labels.clone()));
            }
            Change::Room { node, more } => {
                let place = self.demand_place();
                self.change(node, |node, free| {
                    more.iter().for_each(|more| add(Arc::make_mut(&mut node.inventory), free, place, *more))
                });
            }
            Change::Register { demand } => {
                let Some(node) = self.added(demand) else { return };
                self.nodes.insert(node.id.clone(), (node.clone(), Free::of(&node.inventory)));
            }
        }
    }

    fn demand_place(&self) -> Place {
        self.job.spec.as_ref().map(|spec| spec.demand.place).unwrap_or_default()
    }

    fn spec(&mut self, change: impl FnOnce(&mut RunSpec)) {
        let Some(spec) = &mut self.job.spec else { return };
        change(Arc::make_mut(spec));
    }

    fn change(&mut self, id: &NodeId, change: impl FnOnce(&mut Node, &mut Free)) {
        let Some(view) = self.node(id) else { return };
        let (mut node, mut free) = (view.node.clone(), view.free.clone());
        change(&mut node, &mut free);
        self.nodes.insert(id.clone(), (node, free));
    }

    fn recount(&mut self, id: &NodeId) {
        let Some(view) = self.node(id) else { return };
        let node = view.node.clone();
        let mut free = Free::of(&node.inventory);
        for LeaseView { job, allocation, lends } in self.leases(id) {
            free.take(allocation, job.depth());
            if lends {
                free.change_permits(allocation.place, |permits| permits.wait(job.depth()));
            }
        }
        self.nodes.insert(id.clone(), (node, free));
    }

    /// A node that is just large enough.
    fn added(&self, demand: &Demand) -> Option<Node> {
        let unused = |id: &NodeId| self.node(id).is_none();
        let named = |number: u32| NodeId::new(&format!("another-node-{number}")).ok();
        let id = demand.node.clone().or_else(|| (0..u32::MAX).filter_map(named).find(unused))?;
        let gpu = |index| new_gpu(index, demand.vram_bytes);
        let places = |place| u32::from(demand.place == place);
        let inventory = Inventory {
            cores: demand.cores,
            memory_bytes: demand.memory_bytes,
            architecture: demand.architecture,
            gpus: (0..demand.gpus).map(gpu).collect(),
            devices: demand.devices.clone(),
            labels: demand.labels.clone(),
            places: places(Place::Process),
            llm_places: places(Place::Llm),
            declared: false,
            unchecked: false,
        };
        Some(Node::new(id, BootId(0), inventory, Timestamp::NOT_YET))
    }
}

fn new_gpu(index: u32, memory_bytes: u64) -> Gpu {
    let (uuid, vendor, model) = (String::new(), String::new(), String::new());
    Gpu { index, uuid, vendor, model, memory_bytes, mig_profile: None, healthy: true }
}

/// Adds free resources to a node.
fn add(inventory: &mut Inventory, free: &mut Free, place: Place, more: More) {
    match more {
        More::Places(places) => {
            let (total, counted) = match place {
                Place::Process => (&mut inventory.places, &mut free.processes),
                Place::Llm => (&mut inventory.llm_places, &mut free.llm),
            };
            *total += places;
            counted.total += places;
            counted.free = counted.total.saturating_sub(counted.permits.taken());
        }
        More::Cores(cores) => (inventory.cores, free.cores) = (inventory.cores + cores, free.cores + cores),
        More::MemoryBytes(bytes) => {
            inventory.memory_bytes += bytes;
            free.memory_bytes += bytes;
        }
        More::VramBytes { gpu, bytes } => {
            for known in inventory.gpus.iter_mut().filter(|known| known.index == gpu) {
                known.memory_bytes += bytes;
            }
            for known in free.gpus.iter_mut().filter(|known| known.index == gpu) {
                known.total_bytes += bytes;
                known.free_bytes += bytes;
            }
        }
        More::Gpus { count, vram_bytes } => {
            let next = inventory.gpus.iter().map(|gpu| gpu.index + 1).max().unwrap_or(0);
            for index in next..next.saturating_add(count) {
                inventory.gpus.push(new_gpu(index, vram_bytes));
                free.gpus.push(GpuFree { index, total_bytes: vram_bytes, free_bytes: vram_bytes, holders: 0 });
            }
        }
    }
}

impl<'c, C: Cluster> WhatIf<'c, C> {
    fn changed(&self) -> impl Iterator<Item = NodeView<'_>> {
        self.nodes.values().map(|(node, free)| NodeView { node, free })
    }

    fn is_as_before(&self, view: &NodeView<'_>) -> bool {
        !self.nodes.contains_key(&view.node.id)
    }
}

impl<'c, C: Cluster> Cluster for WhatIf<'c, C> {
    type Class = Class<'c, C::Class>;

    fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        let mut namespaces: Vec<_> = self.line.iter().map(|(namespace, _)| namespace).collect();
        namespaces.sort_by_cached_key(|namespace| self.share(namespace));
        namespaces.into_iter()
    }

    fn share(&self, namespace: &Namespace) -> Share {
        let share = self.base.share(namespace);
        let key = LimitKey { namespace: namespace.clone(), agent: None, value: None };
        match self.permits.get(&key) {
            Some(permits) => Share::new(permits.taken(), self.weight(namespace), share.progress),
            None => share,
        }
    }

    fn weight(&self, namespace: &Namespace) -> u32 {
        self.base.weight(namespace)
    }

    fn progress(&self) -> u64 {
        self.base.progress()
    }

    fn classes<'a>(&'a self, namespace: &'a Namespace) -> impl Iterator<Item = &'a Self::Class> + 'a {
        self.line.iter().filter(move |(of, _)| of == namespace).flat_map(|(_, classes)| classes)
    }

    fn shapes(&self) -> impl Iterator<Item = Shape<'_>> {
        let asked = self.job.spec.as_ref().map(|spec| Shape {
            demand: &spec.demand,
            depth: self.job.depth(),
            patient: self.job.is_patient(),
        });
        self.base.shapes().chain(asked)
    }

    fn turn(&self, job: &Job) -> Turn {
        self.base.turn(job)
    }

    fn waiting<'a>(&'a self, class: &'a Self::Class) -> impl Iterator<Item = &'a Job> + 'a {
        let jobs: Box<dyn Iterator<Item = &'a Job> + 'a> = match class {
            Class::Asked => Box::new(std::iter::once(&self.job)),
            Class::Other(class) => Box::new(self.base.waiting(class)),
            Class::Ahead(class) => {
                let own = self.turn(&self.job);
                let ahead = self.base.waiting(class).take_while(move |job| self.turn(job) < own);
                Box::new(ahead.filter(|job| job.id != self.job.id))
            }
        };
        jobs
    }

    fn ahead(&self, job: &Job, limit: usize) -> Option<usize> {
        self.base.ahead(job, limit)
    }

    fn class_len(&self, job: &Job) -> Option<usize> {
        self.base.class_len(job)
    }

    fn limits(&self, job: &Job) -> Vec<Limit> {
        let mut limits = self.base.limits(job);
        let changed = self.running_max.filter(|_| job.namespace == self.job.namespace);
        for limit in limits.iter_mut().filter(|limit| Limited::of(&limit.key) == Limited::Namespace) {
            limit.running_max = changed.or(limit.running_max);
        }
        limits
    }

    fn permits(&self, key: &LimitKey) -> Option<&ConcurrencyPermits> {
        self.permits.get(key).or_else(|| self.base.permits(key))
    }

    fn circuit(&self, job: &Job) -> Option<&Circuit> {
        let version = |job: &Job| job.pin.as_ref().map(|pin| pin.version);
        let same =
            job.namespace == self.job.namespace && job.agent == self.job.agent && version(job) == version(&self.job);
        let known = self.base.circuit(job)?;
        Some(self.circuit.as_ref().filter(|_| same).unwrap_or(known))
    }

    fn now(&self) -> ClusterTime {
        self.now
    }

    fn full_at(&self, key: &LimitKey) -> ClusterTime {
        self.base.full_at(key)
    }

    fn opens_at(&self, key: &LimitKey, rate: Rate) -> ClusterTime {
        self.base.opens_at(key, rate)
    }

    fn room<'a>(&'a self, demand: &'a Demand, strategy: Strategy) -> impl Iterator<Item = NodeView<'a>> + 'a {
        let places = move |view: &NodeView<'a>| {
            let free = view.free.places(demand.place).free;
            if strategy == Strategy::Spread { u32::MAX - free } else { free }
        };
        let mut changed: Vec<NodeView<'a>> = self.changed().collect();
        changed.sort_by_key(|view| (places(view), &view.node.id));
        let mut changed = changed.into_iter().peekable();
        let mut others = self.base.room(demand, strategy).filter(|view| self.is_as_before(view)).peekable();
        std::iter::from_fn(move || {
            let rank = |view: &NodeView<'a>| (places(view), view.node.id.clone());
            let changed_first = match (changed.peek(), others.peek()) {
                (Some(changed), Some(other)) => rank(changed) < rank(other),
                (changed, _) => changed.is_some(),
            };
            if changed_first { changed.next() } else { others.next() }
        })
    }

    fn lending(&self) -> impl Iterator<Item = NodeView<'_>> {
        let others = self.base.lending().filter(|view| self.is_as_before(view));
        let mut all: Vec<_> = others.chain(self.changed().filter(|view| view.free.lends())).collect();
        all.sort_by_key(|view| &view.node.id);
        all.into_iter()
    }

    fn warm<'a>(&'a self, digest: &'a Digest) -> impl Iterator<Item = (NodeView<'a>, u32)> + 'a {
        let others = self.base.warm(digest).filter(|(view, _)| self.is_as_before(view));
        let changed = self.changed().filter_map(|view| Some((view, *view.node.warm.get(digest)?)));
        let mut all: Vec<_> = others.chain(changed).collect();
        all.sort_by_key(|(view, _)| &view.node.id);
        all.into_iter()
    }

    fn leases(&self, node: &NodeId) -> impl Iterator<Item = LeaseView<'_>> {
        self.base.leases(node).filter(|held| !self.ended.contains(&held.job.id))
    }

    fn node(&self, id: &NodeId) -> Option<NodeView<'_>> {
        let changed = self.nodes.get(id).map(|(node, free)| NodeView { node, free });
        changed.or_else(|| self.base.node(id))
    }

    fn nodes(&self) -> impl Iterator<Item = NodeView<'_>> {
        self.base.nodes().filter(|view| self.is_as_before(view)).chain(self.changed())
    }

    fn capable<'a>(&'a self, demand: &'a Demand) -> impl Iterator<Item = NodeView<'a>> + 'a {
        let others = self.base.capable(demand).filter(|view| self.is_as_before(view));
        others.chain(self.changed())
    }
}
