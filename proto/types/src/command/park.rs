//! Commands about jobs that hold no lease while they wait.

use crate::{Channel, FencingToken, JobId, MessageId, Micros, NodeId, Payload, StepKey, Wait};

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
    /// How long this attempt has run.
    pub used: Micros,
    /// How many messages the recorded steps have read; these leave the inbox.
    pub read: u64,
}

/// Puts a message into the inbox of a job that has not ended. A repeat under the same id changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliverMessage {
    /// To whom.
    pub job: JobId,
    /// The sender's name for it.
    pub id: MessageId,
    /// The question that it answers: the key of the step that asks.
    pub answers: Option<StepKey>,
    /// What it is about.
    pub channel: Option<Channel>,
    /// What it says, JSON, at most [`crate::INLINE_BYTES_MAX`] bytes.
    pub payload: Payload,
}
