//! One entry of the log: all that `apply` may depend on besides the state.

use crate::{ClusterTime, Level, Request, Seq, Timestamp};

/// The state that an entry was planned on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    /// Its `seq`: another one makes the whole entry a no-op, on all replicas.
    pub seq: Seq,
    /// Its chain: the same `seq` with another chain stops the replica.
    pub chain: [u8; 32],
}

/// One committed log entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The cluster that the entry belongs to.
    pub cluster_id: u128,
    /// The feature level it was written at.
    pub level: Level,
    /// A reader below this level must stop.
    pub min_reader_level: Level,
    /// The state it was planned on.
    pub parent: Parent,
    /// Wall clock of the leader, never before the entry before: for display and cron only.
    pub at: Timestamp,
    /// The cluster's own clock: for timeouts.
    pub clock: ClusterTime,
    /// What is asked, in order.
    pub requests: Vec<Request>,
}
