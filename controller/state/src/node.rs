//! A node in the state: its registration, the resources of its leases and its free resources.

use std::sync::Arc;

use atlas_allocation::{Free, suits};
use atlas_types::{Demand, FencingToken, JobId, Lease, Node, NodeHealth, Place};

use crate::map::Map;

/// A node with its leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    pub node: Arc<Node>,
    /// What its leases leave free. That says nothing of its health.
    pub free: Free,
    pub(crate) leases: Map<FencingToken, JobId>,
    /// The last token given out when it advertised its present inventory.
    pub(crate) inventory_since: FencingToken,
    /// Its inventory shrank under its leases: they hold more than it has.
    pub(crate) over: bool,
    /// Places of each kind that it may have given out beyond its own: see [`Free::places_owed`]. No grant may make that more.
    pub(crate) owed: [u32; 2],
}

impl NodeState {
    pub(crate) fn new(node: Arc<Node>, inventory_since: FencingToken) -> Self {
        let free = Free::of(&node.inventory);
        Self { node, free, leases: Map::new(), inventory_since, over: false, owed: [0; 2] }
    }

    /// Whether it accepts leases: its session is alive, it is not cordoned or draining, and its circuit admits an attempt.
    pub fn takes_leases(&self) -> bool {
        self.node.health == NodeHealth::Ready
            && !self.node.cordoned
            && !self.node.draining
            && self.node.circuit.admits()
    }

    /// Whether `demand` of a job of this depth fits now.
    pub fn has_room(&self, demand: &Demand, depth: u32) -> bool {
        suits(demand, &self.node) && self.free.fit(&self.node.inventory, demand, depth).is_some()
    }

    /// Its leases by token, oldest first.
    pub fn leases(&self) -> impl ExactSizeIterator<Item = (FencingToken, JobId)> + '_ {
        self.leases.iter().map(|(token, job)| (*token, *job))
    }

    pub(crate) fn take(&mut self, lease: &Lease, depth: u32) {
        self.over |= !self.free.take(&lease.allocation, depth);
        self.leases.insert(lease.token, lease.job);
    }

    /// What is free after `leases`, all that it holds.
    pub(crate) fn recount<'a>(&mut self, leases: impl Iterator<Item = &'a Lease>) {
        self.free = Free::with_permits_of(&self.node.inventory, &self.free);
        self.over = false;
        for lease in leases {
            self.over |= !self.free.hold(&lease.allocation);
        }
    }

    /// A job of this depth, which takes a place of this kind, begins to wait for its children, or waits no longer.
    pub(crate) fn lend(&mut self, place: Place, depth: u32, waits: bool) {
        self.free.change_permits(place, |permits| if waits { permits.wait(depth) } else { permits.resume(depth) });
        self.admit_owed();
    }

    /// Takes what is owed now as it is: no grant is the reason.
    pub(crate) fn admit_owed(&mut self) {
        self.owed = self.free.places_owed();
    }
}
