//! Nodes and the leases they hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{
    Allocation, Attempt, BootId, Circuit, ClusterTime, Digest, FencingToken, Inventory, JobId, Namespace, NodeEpoch,
    NodeId, Timestamp,
};

/// Whether a node's session lives. Kept apart from `cordoned`, which is an operator's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeHealth {
    /// Its session lives.
    Ready,
    /// Its session was lost; it holds no lease.
    Down,
}

/// A worker machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub id: NodeId,
    /// Its incarnation.
    pub epoch: NodeEpoch,
    /// The process that holds the name.
    pub boot_id: BootId,
    /// What it has, as its worker tells it. Shared, because the node changes with each job and this does not.
    pub inventory: Arc<Inventory>,
    /// Labels that an operator gave it, over those of its inventory: see [`Self::labels`].
    pub operator_labels: BTreeMap<String, String>,
    /// Whether its session lives.
    pub health: NodeHealth,
    /// Set by an operator: no new leases.
    pub cordoned: bool,
    /// Set by drain: no new leases, and it is drained once it holds none.
    pub draining: bool,
    /// By when its worker gives back what still runs, if the drain has a deadline.
    pub drain_until: Option<ClusterTime>,
    /// Idle warm slots by package digest, as reported.
    pub warm: BTreeMap<Digest, u32>,
    /// When this epoch began.
    pub registered_at: Timestamp,
    pub circuit: Circuit,
    /// The latest worker that was refused because it asked for this node's name.
    pub rival: Option<Arc<Rival>>,
}

/// A worker that asked for the name of a node while the node's own worker renewed its session, and was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rival {
    /// Its address, as the leader saw it.
    pub address: Arc<str>,
    /// The address of the node's own worker.
    pub holder: Arc<str>,
    /// When it was noted last.
    pub at: Timestamp,
}

impl Rival {
    /// The longest address.
    pub const ADDRESS_BYTES_MAX: usize = 128;
}

impl Node {
    /// A node in its first epoch, without changes by operators.
    pub fn new(id: NodeId, boot_id: BootId, inventory: Inventory, registered_at: Timestamp) -> Self {
        Self {
            id,
            epoch: NodeEpoch(1),
            boot_id,
            inventory: Arc::new(inventory),
            operator_labels: BTreeMap::new(),
            health: NodeHealth::Ready,
            cordoned: false,
            draining: false,
            drain_until: None,
            warm: BTreeMap::new(),
            registered_at,
            circuit: Circuit::default(),
            rival: None,
        }
    }

    /// Its labels by key: those that its worker tells, and over them those that an operator gave it.
    pub fn labels(&self) -> BTreeMap<&str, &str> {
        let labels = self.inventory.labels.iter().chain(&self.operator_labels);
        labels.map(|(key, value)| (key.as_str(), value.as_str())).collect()
    }

    /// One of [`Self::labels`].
    pub fn label(&self, key: &str) -> Option<&str> {
        let given = self.operator_labels.get(key);
        given.or_else(|| self.inventory.labels.get(key)).map(String::as_str)
    }
}

/// The right of one node to run one attempt of a job while the node's session lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The job's namespace.
    pub namespace: Namespace,
    pub job: JobId,
    /// Who may run it.
    pub node: NodeId,
    /// The incarnation it was granted to.
    pub epoch: NodeEpoch,
    /// Outdates all older leases.
    pub token: FencingToken,
    /// Number of the attempt.
    pub attempt: Attempt,
    /// What it holds.
    pub allocation: Allocation,
    /// When it was granted.
    pub granted_at: ClusterTime,
    /// True once a start was committed; required before the run of a job that must not run twice.
    pub started: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operators_labels_go_over_those_of_the_worker() {
        let labels = |pairs: &[(&str, &str)]| pairs.iter().map(|&(key, value)| (key.into(), value.into())).collect();
        let inventory = Inventory { labels: labels(&[("rack", "7"), ("zone", "a")]), ..Inventory::default() };
        let mut node = Node::new(NodeId::new("n1").expect("a name"), BootId(1), inventory, Timestamp(1));
        assert_eq!((node.label("zone"), node.label("disk")), (Some("a"), None));
        node.operator_labels = labels(&[("disk", ""), ("zone", "b")]);
        assert_eq!(node.labels(), BTreeMap::from([("disk", ""), ("rack", "7"), ("zone", "b")]));
        assert!(node.labels().into_iter().all(|(key, value)| node.label(key) == Some(value)));
    }
}
