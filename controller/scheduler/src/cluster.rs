//! The data that the scheduler reads: a narrow view of the indexes of the replicated state.

use atlas_allocation::{ConcurrencyPermits, Free};
use atlas_types::{
    Allocation, Circuit, ClusterTime, Demand, Digest, Job, Limit, LimitKey, Namespace, Node, NodeId, Rate, Share, Turn,
};

use crate::{Strategy, could_ever};

/// The read side of a cluster, limited to what a plan needs.
///
/// Each iterator is lazy and based on an index, so a plan that stops early has read little.
pub trait Cluster {
    /// Identifies a set of waiting jobs with the same demand, depth and limits, all of which have parked, or none.
    type Class;

    /// The namespaces with waiting jobs, the one with the lowest share first.
    fn namespaces(&self) -> impl Iterator<Item = &Namespace>;

    /// What a namespace has had so far for its weight.
    fn share(&self, namespace: &Namespace) -> Share;

    /// The weight of a namespace.
    fn weight(&self, namespace: &Namespace) -> u32;

    /// The progress of the namespaces whose turn is next.
    fn progress(&self) -> u64;

    /// The classes of a namespace that have a waiting job, ordered by the turn of their first job.
    fn classes<'a>(&'a self, namespace: &'a Namespace) -> impl Iterator<Item = &'a Self::Class> + 'a;

    /// What the classes ask, each shape once.
    fn shapes(&self) -> impl Iterator<Item = Shape<'_>>;

    /// The turn of a job in its namespace.
    fn turn(&self, job: &Job) -> Turn;

    /// The waiting jobs of a class, in their turn. Jobs that wait for a time or a person are not among them.
    fn waiting<'a>(&'a self, class: &'a Self::Class) -> impl Iterator<Item = &'a Job> + 'a;

    /// The number of jobs of its class that come before `job`, counted up to `limit`. None if the job does not wait for
    /// a node.
    fn ahead(&self, job: &Job, limit: usize) -> Option<usize>;

    /// The limits that hold for a job, and for all jobs of its class alike: those of its agent, of a value of its agent's key, and of
    /// its namespace.
    fn limits(&self, job: &Job) -> Vec<Limit>;

    /// The running jobs that a limit counts; none if there are none.
    fn permits(&self, key: &LimitKey) -> Option<&ConcurrencyPermits>;

    /// The circuit of the agent version that a job runs, the same for all jobs of a class; none if its failures are not counted.
    fn circuit(&self, job: &Job) -> Option<&Circuit>;

    /// The time at which the placements of a plan start.
    fn now(&self) -> ClusterTime;

    /// When the token bucket of a limit is full.
    fn full_at(&self, key: &LimitKey) -> ClusterTime;

    /// From when on a job may start that takes a token of a limit with this rate.
    fn opens_at(&self, key: &LimitKey, rate: Rate) -> ClusterTime;

    /// Every node that has room for `demand`, and possibly others, in the order of `strategy`: fewest free places first
    /// for packing, most first for spreading.
    fn room<'a>(&'a self, demand: &'a Demand, strategy: Strategy) -> impl Iterator<Item = NodeView<'a>> + 'a;

    /// The nodes with a job that waits for its child and lends its place to spawned jobs, by name.
    fn lending(&self) -> impl Iterator<Item = NodeView<'_>>;

    /// The nodes that have idle warm slots of a package, by name, with the number of these slots.
    fn warm<'a>(&'a self, digest: &'a Digest) -> impl Iterator<Item = (NodeView<'a>, u32)> + 'a;

    /// The leases of a node with their jobs.
    fn leases(&self, node: &NodeId) -> impl Iterator<Item = LeaseView<'_>>;

    /// The number of jobs in the class of `job`; none if it does not wait for a node.
    fn class_len(&self, job: &Job) -> Option<usize>;

    /// One node by name.
    fn node(&self, id: &NodeId) -> Option<NodeView<'_>>;

    /// All registered nodes, including those that are down. A plan only checks whether there is one.
    fn nodes(&self) -> impl Iterator<Item = NodeView<'_>>;

    /// Every node, even one that is down, that could run `demand` if it were empty, and possibly others. A plan reads
    /// them for a demand without room, up to the first node that could run it.
    fn capable<'a>(&'a self, demand: &'a Demand) -> impl Iterator<Item = NodeView<'a>> + 'a;

    /// True if some registered node, ready or down, could run `demand` if it were empty.
    fn could_ever(&self, demand: &Demand) -> bool {
        match &demand.node {
            Some(pinned) => self.node(pinned).is_some_and(|view| could_ever(demand, view.node)),
            None => self.capable(demand).any(|view| could_ever(demand, view.node)),
        }
    }
}

/// What decides whether a node has room for the jobs of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape<'a> {
    pub demand: &'a Demand,
    /// How deep the jobs were spawned.
    pub depth: u32,
    /// They wait even if no node could ever run them.
    pub patient: bool,
}

/// A node and its free resources.
#[derive(Debug, Clone, Copy)]
pub struct NodeView<'a> {
    pub node: &'a Node,
    pub free: &'a Free,
}

/// A running job with what it holds of its node.
#[derive(Debug, Clone, Copy)]
pub struct LeaseView<'a> {
    pub job: &'a Job,
    pub allocation: &'a Allocation,
    /// It waits for a child and lends its place, so it does not end before the child.
    pub lends: bool,
}
