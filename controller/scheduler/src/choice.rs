//! Chooses a node for the next job of a class.
//!
//! Within one plan no resources are freed, so a node that does not fit a class never fits it later. Therefore each
//! cursor only moves forward, and a plan checks a node at most once per class and once per placement.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::iter::Peekable;

use atlas_allocation::{ConcurrencyPermits, Free};
use atlas_types::{
    AgentName, Allocation, Circuit, ClusterTime, Demand, Digest, Job, Limit, LimitKey, Namespace, Node, NodeId, Version,
};

use crate::cluster::{Cluster, NodeView};
use crate::fit::allocate;
use crate::plan::Strategy;

type Nodes<'a> = Box<dyn Iterator<Item = NodeView<'a>> + 'a>;
type WarmNodes<'a> = Box<dyn Iterator<Item = (NodeView<'a>, u32)> + 'a>;

/// The resources that this plan has taken so far, in addition to the leases in the cluster.
#[derive(Default)]
pub(crate) struct Taken<'a> {
    nodes: BTreeMap<&'a NodeId, Free>,
    warm: BTreeMap<(&'a NodeId, &'a Digest), u32>,
    permits: BTreeMap<LimitKey, ConcurrencyPermits>,
    /// When token buckets are full, after the placements of this plan.
    full: BTreeMap<LimitKey, ClusterTime>,
    /// Agent versions of which a job probes the open circuit.
    probed: BTreeSet<(&'a Namespace, &'a AgentName, Version)>,
    /// Nodes on which nothing is placed.
    away: Option<&'a BTreeSet<NodeId>>,
}

impl<'a> Taken<'a> {
    /// Nothing taken, and nothing to take on the nodes that are `away`.
    pub(crate) fn without(away: &'a BTreeSet<NodeId>) -> Self {
        Self { away: Some(away).filter(|away| !away.is_empty()), ..Self::default() }
    }

    /// True if a limit lets no further job start, after the placements of this plan.
    pub(crate) fn is_at<C: Cluster>(&self, cluster: &C, limit: &Limit, depth: u32) -> bool {
        let permits = self.permits.get(&limit.key).or_else(|| cluster.permits(&limit.key));
        is_full(limit, permits, depth).is_some()
            || limit.rate.is_some_and(|rate| {
                let opens = match self.full.get(&limit.key) {
                    Some(full) => rate.open_at(*full),
                    None => cluster.opens_at(&limit.key, rate),
                };
                opens > cluster.now()
            })
    }

    /// True if the circuit of its agent version lets a job not start, after the placements of this plan.
    pub(crate) fn is_broken<C: Cluster>(&self, cluster: &C, job: &'a Job) -> bool {
        let Some(circuit) = cluster.circuit(job) else { return false };
        !circuit.admits() || circuit.wants_probe() && version(job).is_some_and(|version| self.probed.contains(&version))
    }

    /// Notes that a job starts, which may be a probe.
    pub(crate) fn probe<C: Cluster>(&mut self, cluster: &C, job: &'a Job) {
        if cluster.circuit(job).is_some_and(Circuit::wants_probe) {
            self.probed.extend(version(job));
        }
    }

    /// Counts a placement of this plan.
    pub(crate) fn count<C: Cluster>(&mut self, cluster: &C, limit: &Limit, depth: u32) {
        if limit.running_max.is_some() {
            let known = || cluster.permits(&limit.key).cloned().unwrap_or_default();
            self.permits.entry(limit.key.clone()).or_insert_with(known).add(depth);
        }
        if let Some(rate) = limit.rate {
            let full = self.full.get(&limit.key).copied().unwrap_or_else(|| cluster.full_at(&limit.key));
            self.full.insert(limit.key.clone(), rate.after_start(full, cluster.now()));
        }
    }

    fn free<'b>(&'b self, view: NodeView<'b>) -> &'b Free {
        self.nodes.get(&view.node.id).unwrap_or(view.free)
    }

    /// Takes the resources for `demand` on a node. None if they are no longer free.
    fn take(&mut self, demand: &Demand, depth: u32, view: NodeView<'a>) -> Option<Allocation> {
        let allocation = self.fit(demand, depth, view)?;
        self.nodes.entry(&view.node.id).or_insert_with(|| view.free.clone()).take(&allocation, depth);
        Some(allocation)
    }

    /// What `demand` would take of a node.
    fn fit(&self, demand: &Demand, depth: u32, view: NodeView<'_>) -> Option<Allocation> {
        if self.away.is_some_and(|away| away.contains(&view.node.id)) {
            return None;
        }
        // The first job of this plan there is the probe of its open circuit.
        if view.node.circuit.wants_probe() && self.nodes.contains_key(&view.node.id) {
            return None;
        }
        allocate(demand, depth, NodeView { node: view.node, free: self.free(view) })
    }
}

fn version(job: &Job) -> Option<(&Namespace, &AgentName, Version)> {
    Some((&job.namespace, &job.agent, job.pin.as_ref()?.version))
}

/// The number of running jobs and the most there may be, if the limit lets no further job run.
pub(crate) fn is_full(limit: &Limit, permits: Option<&ConcurrencyPermits>, depth: u32) -> Option<(u32, u32)> {
    let most = limit.running_max?;
    let running = permits.map_or(0, ConcurrencyPermits::taken);
    let lends = permits.is_some_and(|permits| permits.lends_to(depth));
    (running >= most && !lends).then_some((running, most))
}

/// The remaining candidate nodes for one class in this plan.
pub(crate) struct Choice<'a> {
    demand: &'a Demand,
    depth: u32,
    lending: Peekable<Nodes<'a>>,
    warm: BTreeMap<&'a Digest, Peekable<WarmNodes<'a>>>,
    cold: Cold<'a>,
}

enum Cold<'a> {
    /// The pinned node, or the nodes in the order in which they are filled.
    Pack(Peekable<Nodes<'a>>),
    /// The nodes that this plan has not used, and the used ones by their free places.
    Spread { fresh: Peekable<Nodes<'a>>, used: BinaryHeap<Used<'a>> },
}

impl<'a> Choice<'a> {
    pub(crate) fn new<C: Cluster>(cluster: &'a C, demand: &'a Demand, depth: u32, strategy: Strategy) -> Self {
        let nodes: Nodes<'a> = match &demand.node {
            Some(pinned) => Box::new(cluster.node(pinned).into_iter()),
            None => Box::new(cluster.room(demand, strategy)),
        };
        let cold = match strategy {
            Strategy::BinPack => Cold::Pack(nodes.peekable()),
            Strategy::Spread => Cold::Spread { fresh: nodes.peekable(), used: BinaryHeap::new() },
        };
        // Jobs of clients cannot use lent places. A pinned node is already in the cold list.
        let lending: Nodes<'a> = match &demand.node {
            None if depth > 0 => Box::new(cluster.lending()),
            _ => Box::new(std::iter::empty()),
        };
        Self { demand, depth, lending: lending.peekable(), warm: BTreeMap::new(), cold }
    }

    /// Whether a node has room, with a choice that has not been asked before. Warm nodes are among the others.
    pub(crate) fn has_room(self, taken: &Taken<'a>) -> bool {
        let nodes = match self.cold {
            Cold::Pack(nodes) | Cold::Spread { fresh: nodes, .. } => nodes,
        };
        self.lending.chain(nodes).any(|view| taken.fit(self.demand, self.depth, view).is_some())
    }

    /// Chooses the node and the allocation for one more job of `digest`, and counts them in `taken`.
    pub(crate) fn next<C: Cluster>(
        &mut self,
        cluster: &'a C,
        digest: &'a Digest,
        taken: &mut Taken<'a>,
    ) -> Option<(&'a Node, Allocation)> {
        let warm = self.next_warm(cluster, digest, taken);
        warm.or_else(|| self.next_lending(taken)).or_else(|| self.next_cold(taken))
    }

    /// Tries lent places of waiting jobs first, because only spawned jobs can use them. Other free resources stay for
    /// jobs that cannot.
    fn next_lending(&mut self, taken: &mut Taken<'a>) -> Option<(&'a Node, Allocation)> {
        while let Some(&view) = self.lending.peek() {
            if let Some(allocation) = taken.take(self.demand, self.depth, view) {
                return Some((view.node, allocation));
            }
            self.lending.next();
        }
        None
    }

    fn next_warm<C: Cluster>(
        &mut self,
        cluster: &'a C,
        digest: &'a Digest,
        taken: &mut Taken<'a>,
    ) -> Option<(&'a Node, Allocation)> {
        let open = || (Box::new(cluster.warm(digest)) as WarmNodes<'a>).peekable();
        let left = self.warm.entry(digest).or_insert_with(open);
        while let Some(&(view, idle)) = left.peek() {
            let used = taken.warm.get(&(&view.node.id, digest)).copied().unwrap_or(0);
            let allocation = if used < idle { taken.take(self.demand, self.depth, view) } else { None };
            if let Some(allocation) = allocation {
                taken.warm.insert((&view.node.id, digest), used + 1);
                return Some((view.node, allocation));
            }
            left.next();
        }
        None
    }

    fn next_cold(&mut self, taken: &mut Taken<'a>) -> Option<(&'a Node, Allocation)> {
        match &mut self.cold {
            Cold::Pack(left) => {
                while let Some(&view) = left.peek() {
                    if let Some(allocation) = taken.take(self.demand, self.depth, view) {
                        return Some((view.node, allocation));
                    }
                    left.next();
                }
                None
            }
            Cold::Spread { fresh, used } => loop {
                let best_used = used.peek().map(|used| used.places_free);
                let best_fresh = fresh.peek().map(|view| view.free.places(self.demand.place).free);
                let expected = best_used.max(best_fresh)?;
                let view = if best_fresh == Some(expected) { fresh.next()? } else { used.pop()?.view };
                let places_free = taken.free(view).places(self.demand.place).free;
                // Another class has used this node since it was put into the heap. It is put back at its new position.
                if places_free < expected {
                    used.push(Used { places_free, view });
                } else if let Some(allocation) = taken.take(self.demand, self.depth, view) {
                    let places_free = taken.free(view).places(self.demand.place).free;
                    used.push(Used { places_free, view });
                    return Some((view.node, allocation));
                }
            },
        }
    }
}

/// A node that this plan has used. Ordered by most free places, then by name.
struct Used<'a> {
    places_free: u32,
    view: NodeView<'a>,
}

impl Used<'_> {
    fn rank(&self) -> (u32, Reverse<&NodeId>) {
        (self.places_free, Reverse(&self.view.node.id))
    }
}

impl PartialEq for Used<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Used<'_> {}

impl PartialOrd for Used<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Used<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}
