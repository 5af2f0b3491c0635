//! Commands about nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{BootId, Digest, Inventory, Micros, NodeEpoch, NodeId};

/// A worker's hello. A new boot id is a new epoch and loses the older epoch's leases; the same boot id is a resume, which
/// is proposed only if the inventory changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterNode {
    /// The node's name.
    pub node: NodeId,
    /// The process that claims it.
    pub boot_id: BootId,
    /// What it has.
    pub inventory: Inventory,
}

/// Stops new leases on a node until it is empty; a new epoch of the node ends the drain. The latest one holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainNode {
    pub node: NodeId,
    /// After so long its worker gives back what still runs; none lets everything finish.
    pub deadline: Option<Micros>,
}

/// Stops or allows new leases on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cordon {
    pub node: NodeId,
    /// True stops new leases, false allows them again and ends a drain.
    pub cordoned: bool,
}

/// Closes the circuit of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeNode {
    pub node: NodeId,
}

/// Sets labels of a node, which override those of its worker, or removes such labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelNode {
    pub node: NodeId,
    /// Values by key; none takes the operator's label away, so that the worker's counts again if there is one.
    pub labels: BTreeMap<String, Option<String>>,
}

/// Removes a node that holds no lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoveNode {
    pub node: NodeId,
}

/// Another worker asked for the name of a node whose own worker renews its session, and was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteRival {
    pub node: NodeId,
    /// The incarnation of the node's own worker.
    pub epoch: NodeEpoch,
    /// The address of the worker that was refused.
    pub address: Arc<str>,
    /// The address of the node's own worker.
    pub holder: Arc<str>,
}

/// A node's session was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoseNode {
    pub node: NodeId,
    /// The incarnation that was lost; another one makes this a stale command.
    pub epoch: NodeEpoch,
}

/// A node's idle warm slots changed outside of a job's end: evicted, or warmed ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmChanged {
    pub node: NodeId,
    /// The incarnation that reports.
    pub epoch: NodeEpoch,
    /// The package whose slots changed.
    pub digest: Digest,
    /// Idle warm slots of that package now.
    pub idle: u32,
}
