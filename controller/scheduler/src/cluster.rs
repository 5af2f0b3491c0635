//! What the scheduler reads: a narrow view of the indexes of the replicated state.

use atlas_allocation::{ConcurrencyPermits, Free};
use atlas_types::{AgentName, Demand, Digest, Job, Namespace, Node, NodeId};

use crate::{Strategy, could_ever};

/// The read side of a cluster, as narrow as a plan needs it.
///
/// Each iterator is lazy and comes from an index: a plan that stops early has read little.
pub trait Cluster {
    /// Names a set of waiting jobs that have one demand, one depth and, where their agent limits how many run at once, one agent.
    type Class;

    /// The classes that have a waiting job, ordered by the priority and age of their first job.
    fn classes(&self) -> impl Iterator<Item = &Self::Class>;

    /// The waiting jobs of a class, by priority, then age. Jobs that wait for a time or a person are not among them.
    fn waiting<'a>(&'a self, class: &'a Self::Class) -> impl Iterator<Item = &'a Job> + 'a;

    /// How many jobs of its class go before `job`, counted up to `limit`; none if it does not wait for a node.
    fn ahead(&self, job: &Job, limit: usize) -> Option<usize>;

    /// The running jobs of this agent; none if there are none.
    fn running(&self, namespace: &Namespace, agent: &AgentName) -> Option<&ConcurrencyPermits>;

    /// Every node that has room for `demand`, and perhaps others, in the order of `strategy`: fewest free places first
    /// to pack, most first to spread.
    fn room<'a>(&'a self, demand: &'a Demand, strategy: Strategy) -> impl Iterator<Item = NodeView<'a>> + 'a;

    /// The nodes with a job that waits for its child and lends its place to deeper jobs.
    fn lending(&self) -> impl Iterator<Item = NodeView<'_>>;

    /// The nodes that have idle warm slots of a package, and how many.
    fn warm<'a>(&'a self, digest: &'a Digest) -> impl Iterator<Item = (NodeView<'a>, u32)> + 'a;

    /// One node by name.
    fn node(&self, id: &NodeId) -> Option<NodeView<'_>>;

    /// All registered nodes, those that are down included. A plan only asks whether there is one.
    fn nodes(&self) -> impl Iterator<Item = NodeView<'_>>;

    /// Every node, also one that is down, that could meet `demand` if it held nothing, and perhaps others. A plan reads it for
    /// a demand that found no room, up to the first node that could.
    fn capable<'a>(&'a self, demand: &'a Demand) -> impl Iterator<Item = NodeView<'a>> + 'a;

    /// Whether some registered node, ready or down, could run `demand` if it held nothing.
    fn could_ever(&self, demand: &Demand) -> bool {
        match &demand.node {
            Some(pinned) => self.node(pinned).is_some_and(|view| could_ever(demand, view.node)),
            None => self.capable(demand).any(|view| could_ever(demand, view.node)),
        }
    }
}

/// A node and what its leases leave free.
#[derive(Debug, Clone, Copy)]
pub struct NodeView<'a> {
    pub node: &'a Node,
    pub free: &'a Free,
}
