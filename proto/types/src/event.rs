//! Events: facts that a command established, numbered without a gap.

use std::sync::Arc;

use crate::{
    AgentVersion, ClusterConfig, EventSeq, Job, JobId, JobStatus, MessageId, Namespace, Node, NodeId, Object, Payload,
    Question, Run, RunChange, Step, Timestamp,
};

/// An event with its number and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// Gapless, from 1.
    pub seq: EventSeq,
    /// The entry's wall clock.
    pub at: Timestamp,
    /// What happened.
    pub event: Event,
}

/// What made a job's event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobChange {
    /// It was submitted. Not a change of status (compatibility §5.2).
    Submitted,
    /// A lease was granted: pending → running. Also the first half of a failure without a run.
    Granted,
    /// A run began to carry it: pending → running, without a lease.
    Carried,
    /// Its start was committed.
    Started,
    /// Its lease was lost: running → pending, or in doubt.
    Lost,
    /// Its backoff or its delay passed, or what it waited for while parked came.
    Woken,
    /// It was in doubt, and a person let it run again: it waits for its next attempt.
    Resolved,
    /// It parked: running → pending, without a lease.
    Parked,
    /// An orchestrator decided on it, or its decision was voided: it is pending still.
    Routed,
    /// A cancel of the running job was accepted.
    Cancelling,
    /// It ended; the status says how.
    Ended,
}

/// What happened. A job's event carries the job as it was right after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A job changed.
    Job {
        /// What changed.
        change: JobChange,
        /// Its status before; for a submission the same as now.
        old_status: JobStatus,
        /// The job after the change.
        job: Arc<Job>,
    },
    /// An agent version was published or retired.
    Agent {
        /// The version after the change.
        agent: Arc<AgentVersion>,
    },
    /// A retired agent version was forgotten.
    AgentDeleted {
        /// The version before.
        agent: Arc<AgentVersion>,
    },
    /// A node was registered, lost, cordoned or drained.
    Node {
        /// The node after the change.
        node: Arc<Node>,
    },
    /// A node was forgotten.
    NodeRemoved {
        /// Its name.
        node: NodeId,
    },
    /// An attempt recorded steps.
    StepsRecorded {
        /// The job.
        job: JobId,
        /// The number of the first of these steps.
        from: u64,
        /// What was added.
        steps: Arc<[Arc<Step>]>,
    },
    /// The oldest steps of a journal were replaced by an artifact.
    StepsFolded {
        /// The job.
        job: JobId,
        /// The first step that is not in it.
        upto: u64,
        /// The steps before it.
        artifact: Payload,
    },
    /// A message was put into the inbox of a job.
    MessageDelivered {
        /// The job.
        job: JobId,
        /// The sender's name for it.
        message: MessageId,
        /// Its number in the inbox.
        number: u64,
    },
    /// A job asked people a question.
    QuestionAsked {
        /// The question.
        question: Arc<Question>,
    },
    /// A question was answered, or ended otherwise.
    QuestionEnded {
        /// The question after the change.
        question: Arc<Question>,
    },
    /// An object was made, or its spec or labels changed.
    ObjectPut {
        /// The object after the change.
        object: Arc<Object>,
    },
    /// An object was deleted.
    ObjectDeleted {
        /// The object before.
        object: Arc<Object>,
    },
    /// A run changed.
    Run {
        /// What changed.
        change: RunChange,
        /// The run after the change.
        run: Arc<Run>,
    },
    /// What was sent to and made by ended jobs was erased.
    Erased {
        namespace: Namespace,
        /// The job; none for all jobs of the namespace that ended before.
        job: Option<JobId>,
    },
    /// The replicated configuration changed.
    Configured {
        /// All of it, as it holds from here on.
        config: Arc<ClusterConfig>,
    },
}
