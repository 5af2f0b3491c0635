//! Carried jobs: jobs that a run executes in place of a worker.

use crate::{ClusterTime, RunId};

/// What carries a job that holds no lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carried {
    /// The run.
    pub run: RunId,
    /// Since when, on the clock of timeouts.
    pub since: ClusterTime,
}
