//! A node as the state holds it: what it said of itself, what its leases hold and what is left.

use std::sync::Arc;

use atlas_types::{Demand, FencingToken, Free, JobId, Lease, Node, NodeHealth};

use crate::map::Map;

/// A node with its leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// The node.
    pub node: Arc<Node>,
    /// What its leases leave free. That says nothing of its health.
    pub free: Free,
    pub(crate) leases: Map<FencingToken, JobId>,
    /// The last token given out when it advertised its present inventory.
    pub(crate) inventory_since: FencingToken,
    /// Its inventory shrank under its leases: they hold more than it has.
    pub(crate) over: bool,
}

impl NodeState {
    pub(crate) fn new(node: Arc<Node>, inventory_since: FencingToken) -> Self {
        let free = Free::of(&node.inventory);
        Self { node, free, leases: Map::new(), inventory_since, over: false }
    }

    /// Whether it may be given leases: its session lives and nobody keeps it from work.
    pub fn takes_leases(&self) -> bool {
        self.node.health == NodeHealth::Ready && !self.node.cordoned && !self.node.draining
    }

    /// Whether `demand` fits now.
    pub fn has_room(&self, demand: &Demand) -> bool {
        let inventory = &self.node.inventory;
        demand.suits(&self.node.id, inventory) && self.free.fit(inventory, demand).is_some()
    }

    /// Its leases by token, oldest first.
    pub fn leases(&self) -> impl ExactSizeIterator<Item = (FencingToken, JobId)> + '_ {
        self.leases.iter().map(|(token, job)| (*token, *job))
    }

    pub(crate) fn take(&mut self, lease: &Lease) {
        self.over |= !self.free.take(&lease.allocation);
        self.leases.insert(lease.token, lease.job);
    }

    /// What is free after `leases`, all that it holds.
    pub(crate) fn recount<'a>(&mut self, leases: impl Iterator<Item = &'a Lease>) {
        self.free = Free::of(&self.node.inventory);
        self.over = false;
        for lease in leases {
            self.over |= !self.free.take(&lease.allocation);
        }
    }
}
