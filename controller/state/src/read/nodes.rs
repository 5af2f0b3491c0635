//! The nodes, and which of them suit a demand.

use std::sync::Arc;

use atlas_allocation::Free;
use atlas_types::{Demand, Digest, NodeId};

use crate::node::NodeState;
use crate::state::State;

impl State {
    /// All nodes by name.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &Arc<NodeState>> {
        self.nodes.iter().map(|(_, node)| node)
    }

    /// A node.
    pub fn node(&self, id: &NodeId) -> Option<&Arc<NodeState>> {
        self.nodes.get(id)
    }

    /// What a node's leases leave free.
    pub fn free(&self, id: &NodeId) -> Option<&Free> {
        self.nodes.get(id).map(|node| &node.free)
    }

    /// Nodes that take leases and have room for `demand` now, those with the fewest free places first.
    pub fn nodes_with_room<'a>(&'a self, demand: &'a Demand) -> impl Iterator<Item = &'a Arc<NodeState>> + 'a {
        let pinned = demand.node.as_ref();
        let pinned_node = pinned.and_then(|id| self.nodes.get(id)).filter(|node| node.takes_leases());
        let others = pinned.is_none().then(|| self.index.rooms.candidates(demand));
        let others = others.into_iter().flatten().filter_map(|id| self.nodes.get(id));
        pinned_node.into_iter().chain(others).filter(|node| node.has_room(demand, 0))
    }

    /// Nodes that take leases and have a job which lends its place to deeper ones.
    pub fn nodes_lending(&self) -> impl Iterator<Item = &Arc<NodeState>> {
        self.index.rooms.lending().filter_map(|id| self.nodes.get(id))
    }

    /// Nodes that take leases and have an idle warm slot of a package.
    pub fn warm_nodes(&self, digest: &Digest) -> impl Iterator<Item = &Arc<NodeState>> {
        let nodes = self.index.rooms.warm(digest).filter_map(|id| self.nodes.get(id));
        nodes.filter(|node| node.takes_leases())
    }

    /// Nodes, ready or down, that may be large enough for `demand` with nothing else on them: all that are, and some that are
    /// only about as large. Whether one is of the right sort is not looked at.
    pub fn capable_nodes(&self, demand: &Demand) -> impl Iterator<Item = &Arc<NodeState>> {
        self.index.rooms.capable(demand).filter_map(|id| self.nodes.get(id))
    }
}
