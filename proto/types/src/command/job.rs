//! Commands about jobs and their leases.

use std::sync::Arc;

use crate::{
    AgentPin, Allocation, Failure, FencingToken, JobId, NodeEpoch, NodeId, ObjectName, Payload, QuestionRule, Spawner,
    Step, StepUsage, Usage,
};

/// Gives one node the right to run one attempt of a pending job. The token is the state's next `grant_seq`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantLease {
    pub job: JobId,
    /// Who must run it.
    pub node: NodeId,
    /// The incarnation that was planned on.
    pub epoch: NodeEpoch,
    /// What it takes; `apply` checks that it is free and that it covers the demand.
    pub allocation: Allocation,
}

/// Commits that an attempt starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartJob {
    pub job: JobId,
    /// The reporting node.
    pub node: NodeId,
    /// Its lease.
    pub token: FencingToken,
}

/// Stores the log of a running attempt, with the lines of earlier attempts. It replaces the log that was stored before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreLog {
    pub job: JobId,
    /// The reporting node.
    pub node: NodeId,
    /// Its lease.
    pub token: FencingToken,
    /// The lines, a JSON array.
    pub stream: Payload,
}

/// An attempt ended with a valid output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompleteJob {
    pub job: JobId,
    /// The reporting node.
    pub node: NodeId,
    /// Its lease.
    pub token: FencingToken,
    /// The output, JSON.
    pub output: Payload,
    /// What the attempt measured.
    pub usage: Usage,
    /// The job's metadata with what the attempt added, a JSON object; none leaves it as it was.
    pub metadata: Option<Arc<[u8]>>,
    /// Its log lines and progress.
    pub stream: Option<Payload>,
}

/// An attempt ended badly, or was stopped after a cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailJob {
    pub job: JobId,
    /// The reporting node.
    pub node: NodeId,
    /// Its lease.
    pub token: FencingToken,
    /// Why. Ignored when a cancel was accepted before.
    pub failure: Failure,
    /// The output, when only its validation failed.
    pub output: Option<Payload>,
    /// What the attempt measured.
    pub usage: Usage,
    /// The job's metadata with what the attempt added; none leaves it as it was.
    pub metadata: Option<Arc<[u8]>>,
    /// Its log lines and progress.
    pub stream: Option<Payload>,
}

/// Fails a job that waits: no node could ever run it, or it waited too long. Seen as pending → running → failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailPending {
    pub job: JobId,
    /// Why.
    pub failure: Failure,
}

/// Cancels a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelJob {
    pub job: JobId,
    /// False cancels a pending job only (compatibility §6.2); true also stops a running one.
    pub running: bool,
}

/// One lease is lost although its node lives: the node says that it does not have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoseLease {
    pub job: JobId,
    /// The lost lease.
    pub token: FencingToken,
}

/// Puts a job whose backoff has passed into the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WakeJob {
    pub job: JobId,
}

/// Runs an ended job again, as a new job linked to the first of the family; does not count against `retry.max_retries`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryJob {
    /// The ended job.
    pub job: JobId,
    /// The new job's id, drawn at the door.
    pub id: JobId,
    /// The new job continues after the recorded steps of the ended one.
    pub resume: bool,
    /// What happens to the new job's questions to people; none for what happens to those of the ended one.
    pub questions: Option<QuestionRule>,
}

/// Erases what was sent to and made by ended jobs: inputs, outputs, logs, steps, texts of errors, metadata. A job keeps
/// its id, agent, times, status and labels. Refused while a job that it concerns has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasePayloads {
    /// The job; none for all jobs of the namespace, and for its ended runs.
    pub job: Option<JobId>,
}

/// Begins a new job with the first steps of another one's journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkJob {
    /// The other job.
    pub job: JobId,
    /// The new job's id, drawn at the door.
    pub id: JobId,
    /// How many steps are copied, at least one.
    pub steps: u64,
    /// The version of the new job.
    pub pin: AgentPin,
    /// The model or tier that it calls in place of the one in its contract.
    pub model: Option<ObjectName>,
    /// Where the last step is one of folded steps, but not their last: those of them that are copied.
    pub cut: Option<Payload>,
    /// What the copied steps cost that are folded. It counts only where the last step is folded.
    pub folded: StepUsage,
    /// A step that follows the copied ones: values that a person sets in the state of a graph.
    pub added: Option<Arc<Step>>,
}

/// What a person, or the agent's reconcile call, found out about the attempt that was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// It had no effect, or none that matters: the job waits for its next attempt.
    RunAgain,
    /// It did all that was asked: the job is completed with this output, JSON.
    Completed(Payload),
    /// The job is failed for this reason. No retry follows, whatever the contract says: running again is another resolution.
    Failed(Arc<str>),
}

/// Resolves a job that is in doubt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolveJob {
    pub job: JobId,
    /// What was found.
    pub resolution: Resolution,
}

/// A parent waits no longer for a child: the child, what follows it and what they spawned are cancelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForsakeChild {
    /// The parent and its lease.
    pub spawner: Spawner,
    /// The reporting node.
    pub node: NodeId,
    /// The child, or one that a retry of it followed.
    pub child: JobId,
}
