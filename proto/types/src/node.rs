//! Nodes and the leases they hold.

use std::collections::BTreeMap;

use crate::{
    Allocation, Attempt, BootId, ClusterTime, Digest, FencingToken, Inventory, JobId, Namespace, NodeEpoch, NodeId,
    Timestamp,
};

/// Whether a node's session lives. Kept apart from `cordoned`, which is an operator's wish.
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
    /// What it has.
    pub inventory: Inventory,
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
}

/// The right of one node to run one attempt of a job while the node's session lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The job's name space.
    pub namespace: Namespace,
    /// The job.
    pub job: JobId,
    /// Who may run it.
    pub node: NodeId,
    /// The incarnation it was granted to.
    pub epoch: NodeEpoch,
    /// Outdates all older leases.
    pub token: FencingToken,
    /// Which try this is.
    pub attempt: Attempt,
    /// What it holds.
    pub allocation: Allocation,
    /// When it was granted.
    pub granted_at: ClusterTime,
    /// True once a start was committed; required before the run of a job that must not run twice.
    pub started: bool,
}
