//! Commands about jobs that hold no lease while they wait.

use crate::{FencingToken, JobId, Micros, NodeId, Wait};

/// Ends the lease of a journaled job that waits. The job continues after its recorded steps, on any node, once a wait is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkJob {
    pub job: JobId,
    /// The reporting node.
    pub node: NodeId,
    /// Its lease.
    pub token: FencingToken,
    /// How many steps the attempt knows; they must be all that are recorded.
    pub journal_length: u64,
    /// What it waits for: any of these, at least one and at most [`crate::WAITS_MAX`].
    pub waits: Vec<Wait>,
    /// Execution time of this attempt.
    pub used: Micros,
}
