//! Commands about the journal of a job.

use std::sync::Arc;

use crate::{FencingToken, JobId, NodeId, Payload, Reservation, Step};

/// Appends steps to a job's journal. The same steps again are accepted and change nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSteps {
    /// The job.
    pub job: JobId,
    /// The reporting node.
    pub node: NodeId,
    /// Its lease.
    pub token: FencingToken,
    /// The number of the first of these steps.
    pub from: u64,
    /// The steps, at most [`crate::STEPS_BYTES_MAX`] bytes.
    pub steps: Vec<Arc<Step>>,
}

/// Replaces the oldest inline steps of a job's journal by an artifact that holds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldSteps {
    /// The job.
    pub job: JobId,
    /// The reporting node.
    pub node: NodeId,
    /// Its lease.
    pub token: FencingToken,
    /// The first step that stays inline.
    pub upto: u64,
    /// The steps from the last fold to `upto`.
    pub artifact: Payload,
}

/// Reserves what a model call may cost, before the call is made. The same call again keeps one reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReserveBudget {
    /// The job that makes the call.
    pub job: JobId,
    /// The reporting node.
    pub node: NodeId,
    /// Its lease.
    pub token: FencingToken,
    /// The call and its amount.
    pub call: Reservation,
}
