//! Chooses a node for the next job of a class.
//!
//! Within one plan no resources are freed, so a node that does not fit a class never fits it later. Each cursor
//! therefore only moves forward, and a plan checks a node once per class, plus once per placement.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::iter::Peekable;

use atlas_allocation::{ConcurrencyPermits, Free};
use atlas_types::{AgentName, Allocation, Demand, Digest, Job, Namespace, Node, NodeId};

use crate::cluster::{Cluster, NodeView};
use crate::fit::allocate;
use crate::plan::Strategy;

type Nodes<'a> = Box<dyn Iterator<Item = NodeView<'a>> + 'a>;
type WarmNodes<'a> = Box<dyn Iterator<Item = (NodeView<'a>, u32)> + 'a>;

/// What this plan has taken so far, on top of what the cluster says.
#[derive(Default)]
pub(crate) struct Taken<'a> {
    nodes: BTreeMap<&'a NodeId, Free>,
    warm: BTreeMap<(&'a NodeId, &'a Digest), u32>,
    running: BTreeMap<(&'a Namespace, &'a AgentName), ConcurrencyPermits>,
}

impl<'a> Taken<'a> {
    /// The running jobs of an agent, with those of this plan.
    pub(crate) fn running<C: Cluster>(&mut self, cluster: &C, job: &'a Job) -> &mut ConcurrencyPermits {
        let known = || cluster.running(&job.namespace, &job.agent).cloned().unwrap_or_default();
        self.running.entry((&job.namespace, &job.agent)).or_insert_with(known)
    }

    fn free<'b>(&'b self, view: NodeView<'b>) -> &'b Free {
        self.nodes.get(&view.node.id).unwrap_or(view.free)
    }

    /// Takes what `demand` needs of a node; none if it does not fit there any more.
    fn take(&mut self, demand: &Demand, depth: u32, view: NodeView<'a>) -> Option<Allocation> {
        let allocation = allocate(demand, depth, NodeView { node: view.node, free: self.free(view) })?;
        self.nodes.entry(&view.node.id).or_insert_with(|| view.free.clone()).take(&allocation, depth);
        Some(allocation)
    }
}

/// The nodes that are left for one class in this plan.
pub(crate) struct Choice<'a> {
    demand: &'a Demand,
    depth: u32,
    lending: Peekable<Nodes<'a>>,
    warm: BTreeMap<&'a Digest, Peekable<WarmNodes<'a>>>,
    cold: Cold<'a>,
}

enum Cold<'a> {
    /// The pinned node, or the nodes to fill one after the other.
    Pack(Peekable<Nodes<'a>>),
    /// The nodes not used so far, and those that were by the room they have left.
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
        // Nothing is lent to a client's own job; the pinned node is in the cold list already.
        let lending: Nodes<'a> = match &demand.node {
            None if depth > 0 => Box::new(cluster.lending()),
            _ => Box::new(std::iter::empty()),
        };
        Self { demand, depth, lending: lending.peekable(), warm: BTreeMap::new(), cold }
    }

    /// The node for one more job of `digest`, and what it takes there; the choice is counted in `taken`.
    pub(crate) fn next<C: Cluster>(
        &mut self,
        cluster: &'a C,
        digest: &'a Digest,
        taken: &mut Taken<'a>,
    ) -> Option<(&'a Node, Allocation)> {
        let warm = self.next_warm(cluster, digest, taken);
        warm.or_else(|| self.next_lending(taken)).or_else(|| self.next_cold(taken))
    }

    /// Places of waiting jobs first: whatever else is free is left to those who cannot have them.
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
                let best_fresh = fresh.peek().map(|view| view.free.places);
                let expected = best_used.max(best_fresh)?;
                let view = if best_fresh == Some(expected) { fresh.next()? } else { used.pop()?.view };
                let places_free = taken.free(view).places;
                // Another class has used it since it was looked at: it goes to its new place in the order first.
                if places_free < expected {
                    used.push(Used { places_free, view });
                } else if let Some(allocation) = taken.take(self.demand, self.depth, view) {
                    used.push(Used { places_free: taken.free(view).places, view });
                    return Some((view.node, allocation));
                }
            },
        }
    }
}

/// A node that this plan has used, ordered so that the most free places come first, then the first name.
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
