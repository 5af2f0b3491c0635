//! What would start a waiting job. Each answer was tried: the planner places the job once its changes are made.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use atlas_allocation::{Free, amount};
use atlas_types::{Demand, Job, JobId, JobStatus, Node, NodeHealth, NodeId, Reason};

use crate::change::{Ask, Change, Counterfactual, Ineligibility, More};
use crate::choice::is_full;
use crate::cluster::{Cluster, LeaseView, NodeView};
use crate::explain::by_the_wall;
use crate::fit::{Dimension, could_ever, short_now};
use crate::plan::told;
use crate::what_if::{Limited, WhatIf};

/// The most answers.
const FOUND_MAX: usize = 5;
/// The most jobs that must end.
const ENDS_MAX: usize = 16;
/// The most nodes whose running jobs are considered.
const NODES_MAX: usize = 64;

/// Ways to start `job`, the least effort first; none if it starts with the next plan, is not waiting, or waits for a run to carry it.
///
/// `ends` ranks running jobs by their expected end; the earliest has the lowest number. The answers hold for a cluster whose last
/// plan was carried out. Checks every node. Used to answer a question about one job, not by plans.
pub fn counterfactuals<C: Cluster>(cluster: &C, job: &Job, ends: &dyn Fn(&Job) -> u64) -> Vec<Counterfactual> {
    let Some(gate) = gate(job) else { return Vec::new() };
    let mut search = Search { ends, found: Vec::new() };
    let start = Attempt { what_if: WhatIf::new(cluster, job), changes: gate, first: false };
    if start.what_if.starts() && start.changes.is_empty() {
        return Vec::new();
    }
    let mut permitted = vec![start];
    for limited in [Limited::Agent, Limited::Key, Limited::Namespace] {
        permitted = permitted.into_iter().flat_map(|start| search.with_permit(limited, start)).collect();
    }
    let permitted = permitted.into_iter().flat_map(past_the_circuit);
    for attempt in permitted.map(at_the_rate) {
        if attempt.what_if.starts() {
            search.keep(attempt);
        } else {
            let tries = search.with_room(&attempt);
            tries.into_iter().for_each(|attempt| search.keep(attempt));
        }
    }
    let mut found = search.found;
    let part_of = |a: &Counterfactual, b: &Counterfactual| a.changes.iter().all(|change| b.changes.contains(change));
    let all = found.clone();
    found.retain(|found| !all.iter().any(|other| other != found && part_of(other, found)));
    let after = |change: &Change| matches!(change, Change::Priority { .. } | Change::OthersWait);
    found.sort_by_key(|found| found.changes.iter().filter(|change| after(change)).count());
    found.truncate(FOUND_MAX);
    found
}

/// The time at which all rates let the job start, if that is not now.
fn at_the_rate<C: Cluster>(start: Attempt<'_, C>) -> Attempt<'_, C> {
    let what_if = &start.what_if;
    let limits = what_if.limits(what_if.job());
    let opens = limits.iter().filter_map(|limit| Some(what_if.opens_at(&limit.key, limit.rate?))).max();
    match opens.filter(|opens| *opens > what_if.now()) {
        None => start,
        Some(opens) => {
            let (until, wait) = (by_the_wall(what_if.job(), opens), opens.since(what_if.now()));
            start.and(vec![Change::Rate { until, wait }])
        }
    }
}

/// The ways past the open circuit of the job's agent version: an operator closes it, or its pause ends.
fn past_the_circuit<C: Cluster>(start: Attempt<'_, C>) -> Vec<Attempt<'_, C>> {
    let what_if = &start.what_if;
    let job = what_if.job();
    let circuit = what_if.circuit(job).filter(|circuit| !circuit.admits());
    let (Some(circuit), Some(pin)) = (circuit, &job.pin) else { return vec![start] };
    let until = circuit.due().map(|due| Change::Probe { until: by_the_wall(job, due) });
    let resume = Change::Resume { agent: job.agent.clone(), version: pin.version };
    until.into_iter().chain([resume]).map(|change| start.and(vec![change])).collect()
}

/// What must happen before the job waits for capacity. None if it never does.
fn gate(job: &Job) -> Option<Vec<Change>> {
    let spec = job.spec.as_ref()?;
    if job.status != JobStatus::Pending || spec.carried {
        return None;
    }
    Some(match job.reason {
        Reason::Queued | Reason::Lost => Vec::new(),
        Reason::Backoff { until } | Reason::Delayed { until } => vec![Change::Time { until: by_the_wall(job, until) }],
        Reason::Routing { .. } => vec![Change::Allow],
        Reason::Approval => vec![Change::Approve],
        Reason::Parked => vec![Change::Wake],
        Reason::InDoubt => vec![Change::Resolve],
        Reason::Running | Reason::Cancelling => return None,
    })
}

struct Attempt<'c, C: Cluster> {
    what_if: WhatIf<'c, C>,
    changes: Vec<Change>,
    /// The job must be the first of all: others would use the change as well.
    first: bool,
}

impl<'c, C: Cluster> Attempt<'c, C> {
    fn and(&self, changes: Vec<Change>) -> Self {
        let mut next = Self { what_if: self.what_if.clone(), changes: self.changes.clone(), first: self.first };
        for change in changes {
            next.what_if.make(&change);
            next.changes.push(change);
        }
        next
    }

    fn and_ends(&self, ended: &[(NodeId, JobId)]) -> Self {
        let mut next = self.and(Vec::new());
        ended.iter().for_each(|(node, job)| next.what_if.end(node, *job));
        next.changes.push(Change::End { jobs: ended.iter().map(|(_, job)| *job).collect() });
        next
    }

    fn starts(&self) -> bool {
        !self.first && self.what_if.starts()
    }

    fn demand(&self) -> Demand {
        self.what_if.job().spec.as_ref().map(|spec| spec.demand.clone()).unwrap_or_default()
    }
}

struct Search<'e> {
    ends: &'e dyn Fn(&Job) -> u64,
    found: Vec<Counterfactual>,
}

impl Search<'_> {
    /// Keeps an attempt that starts the job, if need be with a higher priority, or before the jobs of other namespaces.
    fn keep<C: Cluster>(&mut self, attempt: Attempt<'_, C>) {
        let mut tries = vec![attempt];
        if tries[0].what_if.has_others() {
            tries.push(tries[0].and(vec![Change::OthersWait]));
        }
        for attempt in tries {
            if self.keep_if_it_starts(&attempt)
                || raised(&attempt).is_some_and(|raised| self.keep_if_it_starts(&raised))
            {
                return;
            }
        }
    }

    fn keep_if_it_starts<C: Cluster>(&mut self, attempt: &Attempt<'_, C>) -> bool {
        let starts = attempt.starts();
        self.found.extend(starts.then(|| Counterfactual { changes: attempt.changes.clone() }));
        starts
    }

    /// The ways to a permit within a limit.
    fn with_permit<'c, C: Cluster>(&self, limited: Limited, start: Attempt<'c, C>) -> Vec<Attempt<'c, C>> {
        let depth = start.what_if.job().depth();
        let Some(limit) = start.what_if.limit(limited) else { return vec![start] };
        let full = is_full(&limit, start.what_if.permits(&limit.key), depth);
        let Some((taken, most)) = full else { return vec![start] };
        let mut attempts = Vec::new();
        let needed = (taken - most + 1) as usize;
        let mut siblings = Vec::new();
        for view in start.what_if.nodes() {
            let counted = |held: &LeaseView<'_>| start.what_if.counts(&limit.key, held.job) && !held.lends;
            let held = start.what_if.leases(&view.node.id).filter(counted);
            siblings.extend(held.map(|held| ((self.ends)(held.job), view.node.id.clone(), held.job.id)));
        }
        siblings.sort_unstable();
        let siblings: Vec<_> = siblings.into_iter().map(|(_, node, job)| (node, job)).collect();
        if let Some(ended) = siblings.get(..needed).filter(|_| needed <= ENDS_MAX) {
            let counts = needed..=siblings.len().min(ENDS_MAX);
            let enough = counts.map(|count| start.and_ends(&siblings[..count])).find(|next| next.starts());
            attempts.push(enough.unwrap_or_else(|| start.and_ends(ended)));
        }
        let first = start.first || start.what_if.has_sibling_ahead(&limit.key);
        let at_least = taken.saturating_add(1);
        let raised = match limited {
            Limited::Agent => Change::Limit { at_least },
            Limited::Key => Change::KeyLimit { at_least },
            Limited::Namespace => Change::NamespaceLimit { at_least },
        };
        attempts.push(Attempt { first, ..start.and(vec![raised]) });
        attempts
    }

    /// The ways to free resources on a node.
    fn with_room<'c, C: Cluster>(&self, start: &Attempt<'c, C>) -> Vec<Attempt<'c, C>> {
        let (demand, depth) = (start.demand(), start.what_if.job().depth());
        let fits = |view: NodeView<'_>| short_now(&demand, depth, view).is_empty();
        if start.what_if.nodes().any(fits) {
            return vec![start.and(Vec::new())];
        }
        let mut attempts: Vec<_> = self.ends(start, &demand, depth).into_iter().collect();
        // The least change of each kind.
        let mut best = BTreeMap::<u8, (u64, Vec<Change>)>::new();
        for view in start.what_if.nodes() {
            let Some((kind, effort, changes)) = on_node(&demand, depth, view) else { continue };
            if best.get(&kind).is_none_or(|(least, _)| effort < *least) {
                best.insert(kind, (effort, changes));
            }
        }
        let mut best: Vec<_> =
            best.into_iter().map(|(kind, (_, changes))| (kind.count_ones(), kind, changes)).collect();
        best.sort_by_key(|(count, kind, _)| (*count, *kind));
        attempts.extend(best.into_iter().map(|(.., changes)| start.and(changes)));
        let asks = asks(start.what_if.nodes(), &demand, depth);
        attempts.extend(asks.into_iter().map(|at_most| start.and(vec![Change::Ask { at_most }])));
        attempts.push(start.and(vec![Change::Register { demand: told(&start.what_if, &demand) }]));
        attempts
    }

    /// The running jobs of one node whose end makes enough room, the fewest and the earliest ones.
    fn ends<'c, C: Cluster>(&self, start: &Attempt<'c, C>, demand: &Demand, depth: u32) -> Option<Attempt<'c, C>> {
        let may = |view: &NodeView<'_>| closed(view.node).is_none() && could_ever(demand, view.node);
        let mut nodes: Vec<NodeView<'_>> = start.what_if.nodes().filter(may).collect();
        nodes.sort_by_key(|view| short_now(demand, depth, *view).count());
        let candidates = nodes.into_iter().take(NODES_MAX).filter_map(|view| {
            let held = start.what_if.leases(&view.node.id).filter(|held| !held.lends);
            let mut held: Vec<_> = held.map(|held| ((self.ends)(held.job), held)).collect();
            held.sort_by_key(|(end, held)| (*end, held.job.id));
            let needed = needed(demand, depth, view, &held)?;
            let last = needed.iter().map(|&at| held[at].0).max()?;
            let rest = (0..held.len()).filter(|at| !needed.contains(at));
            let order = needed.iter().copied().chain(rest).map(|at| (view.node.id.clone(), held[at].1.job.id));
            Some(((needed.len(), last), order.collect::<Vec<_>>()))
        });
        let ((needed, _), order) = candidates.min_by(|(a, _), (b, _)| a.cmp(b))?;
        // Jobs ahead of it may use the room, so more of them may have to end.
        let counts = needed..=order.len().min(ENDS_MAX);
        let enough = counts.map(|count| start.and_ends(&order[..count])).find(|next| next.starts());
        Some(enough.unwrap_or_else(|| start.and_ends(&order[..needed])))
    }
}

/// The same with a priority that puts the job before all others of its namespace; none if it has that.
fn raised<'c, C: Cluster>(attempt: &Attempt<'c, C>) -> Option<Attempt<'c, C>> {
    let at_least = attempt.what_if.first_priority().filter(|at_least| *at_least > attempt.what_if.job().priority)?;
    Some(Attempt { first: false, ..attempt.and(vec![Change::Priority { at_least }]) })
}

/// The indexes of the jobs in `held` that must end so that the demand fits; none if that does not help, or is too many.
fn needed(demand: &Demand, depth: u32, view: NodeView<'_>, held: &[(u64, LeaseView<'_>)]) -> Option<Vec<usize>> {
    let inventory = &view.node.inventory;
    let fits = |ended: &[usize]| {
        let mut free = view.free.clone();
        for &at in ended {
            let LeaseView { job, allocation, .. } = held[at].1;
            free.give(allocation);
            free.change_permits(allocation.place, |permits| permits.remove(job.depth(), false));
        }
        free.fit(inventory, demand, depth).is_some()
    };
    let all: Vec<usize> = (0..held.len().min(ENDS_MAX)).collect();
    let enough = (1..=all.len()).find(|&count| fits(&all[..count]))?;
    let mut needed = all[..enough].to_vec();
    for at in 0..enough {
        let without: Vec<usize> = needed.iter().copied().filter(|&other| other != at).collect();
        if fits(&without) {
            needed = without;
        }
    }
    Some(needed)
}

fn closed(node: &Node) -> Option<Ineligibility> {
    match node.health {
        NodeHealth::Down => Some(Ineligibility::Down),
        NodeHealth::Ready if node.draining => Some(Ineligibility::Draining),
        NodeHealth::Ready if node.cordoned => Some(Ineligibility::Cordoned),
        NodeHealth::Ready if !node.circuit.admits() => Some(Ineligibility::Failing),
        NodeHealth::Ready => None,
    }
}

/// What to change on one node: the kinds of the changes as bits, the effort to compare those of one kind, and the changes. None if
/// nothing can be done there.
fn on_node(demand: &Demand, depth: u32, view: NodeView<'_>) -> Option<(u8, u64, Vec<Change>)> {
    let NodeView { node, free } = view;
    let (mut kind, mut effort, mut changes, mut more) = (0, 0_u64, Vec::new(), Vec::new());
    for dimension in short_now(demand, depth, view).iter() {
        match dimension {
            Dimension::Pin | Dimension::Architecture | Dimension::Device | Dimension::Python | Dimension::NodeJs => {
                return None;
            }
            Dimension::Availability => {
                let now = closed(node)?;
                kind |= 1;
                // A node that an operator closed is opened by an operator.
                effort += u64::from(now == Ineligibility::Down);
                changes.push(Change::Open { node: node.id.clone(), now });
            }
            Dimension::Label => {
                let lacks = |(key, value): &(&String, &String)| node.label(key) != Some(value.as_str());
                let labels = demand.labels.iter().filter(lacks).map(|(key, value)| (key.clone(), value.clone()));
                kind |= 2;
                changes.push(Change::Label { node: node.id.clone(), labels: labels.collect() });
            }
            Dimension::Place => {
                let places = free.places(demand.place);
                more.push(More::Places((places.permits.taken() + 1).saturating_sub(places.total)));
            }
            Dimension::Cores => more.push(More::Cores(amount::cores(demand, &node.inventory) - free.cores)),
            Dimension::Memory => {
                more.push(More::MemoryBytes(amount::memory_bytes(demand, &node.inventory) - free.memory_bytes));
            }
            Dimension::Gpu => more.extend(gpu_room(demand, node, free)),
        }
    }
    if !more.is_empty() {
        kind |= 4;
        // First the number of amounts, then bytes in MiB.
        let size = more.iter().map(size).sum::<u64>() >> 20;
        effort = (effort + more.len() as u64).saturating_mul(1 << 44).saturating_add(size);
        changes.push(Change::Room { node: node.id.clone(), more });
    }
    Some((kind, effort, changes))
}

fn size(more: &More) -> u64 {
    match *more {
        More::Places(count) | More::Cores(count) => u64::from(count) << 20,
        More::MemoryBytes(bytes) | More::VramBytes { bytes, .. } => bytes,
        More::Gpus { count, vram_bytes } => u64::from(count).saturating_mul(vram_bytes.max(1 << 20)),
    }
}

/// The GPU memory, or the GPUs, that a node does not have free.
fn gpu_room(demand: &Demand, node: &Node, free: &Free) -> Vec<More> {
    let inventory = &node.inventory;
    let wanted = amount::gpus(demand, inventory) as usize;
    let fitting: Vec<u32> = free.shares(inventory, demand).map(|share| share.index).collect();
    let missing = wanted.saturating_sub(fitting.len());
    let sizable = |gpu: &&atlas_allocation::GpuFree| gpu.total_bytes > 0 && !fitting.contains(&gpu.index);
    let mut others: Vec<_> = free.gpus.iter().filter(sizable).collect();
    if demand.vram_bytes == 0 || inventory.declared || others.len() < missing {
        let count = u32::try_from(missing).unwrap_or(u32::MAX);
        return vec![More::Gpus { count, vram_bytes: demand.vram_bytes }];
    }
    others.sort_by_key(|gpu| (Reverse(gpu.free_bytes), gpu.index));
    let lacks = |gpu: &atlas_allocation::GpuFree| demand.vram_bytes.saturating_sub(gpu.free_bytes);
    others[..missing].iter().map(|gpu| More::VramBytes { gpu: gpu.index, bytes: lacks(gpu) }).collect()
}

/// The largest amounts with which the demand would fit, if only one amount is too large.
fn asks<'a>(nodes: impl Iterator<Item = NodeView<'a>>, demand: &Demand, depth: u32) -> Vec<Ask> {
    let (mut cores, mut memory_bytes, mut vram_bytes) = (0, 0, 0);
    for view in nodes {
        let short = short_now(demand, depth, view);
        let mut dimensions = short.iter();
        let (Some(dimension), None) = (dimensions.next(), dimensions.next()) else { continue };
        let declared = view.node.inventory.declared;
        match dimension {
            // On a declared node a contract takes a core and a gigabyte even if it states less.
            Dimension::Cores if !declared => cores = view.free.cores.max(cores),
            Dimension::Memory if !declared => memory_bytes = view.free.memory_bytes.max(memory_bytes),
            Dimension::Gpu if !declared => {
                let mut free: Vec<u64> = view.free.gpus.iter().map(|gpu| gpu.free_bytes).collect();
                free.sort_unstable_by_key(|bytes| Reverse(*bytes));
                let fits = demand.gpus.checked_sub(1).and_then(|last| free.get(last as usize));
                vram_bytes = fits.copied().unwrap_or(0).max(vram_bytes);
            }
            _ => {}
        }
    }
    let mut asks = Vec::new();
    asks.extend((cores > 0).then_some(Ask::Cores(cores)));
    asks.extend((memory_bytes > 0).then_some(Ask::MemoryBytes(memory_bytes)));
    asks.extend((vram_bytes > 0).then_some(Ask::VramBytes(vram_bytes)));
    asks
}
