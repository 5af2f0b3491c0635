//! Commands of runs about the jobs that they carry.

use std::sync::Arc;

use crate::{Failure, JobId, Payload, RunId};

/// Gives a pending job to a run, which carries it: the job runs without a lease until the run ends it, somebody cancels it or its
/// time is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarryJob {
    pub job: JobId,
    pub run: RunId,
}

/// How a run ends the job that it carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CarriedEnd {
    /// With this valid output, JSON.
    Completed(Payload),
    /// Badly.
    Failed {
        /// Why.
        failure: Failure,
        /// The output, when only its validation failed.
        output: Option<Payload>,
    },
}

/// Ends a job, for the run that carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndCarried {
    pub job: JobId,
    pub run: RunId,
    pub end: CarriedEnd,
    /// The job's metadata with what the run added, a JSON object; none leaves it as it was.
    pub metadata: Option<Arc<[u8]>>,
}
