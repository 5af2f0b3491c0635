//! The replicated state as plain data: everything that cannot be derived, in a fixed order, for snapshots and digests.

use std::sync::Arc;

use crate::{
    AgentVersion, Bucket, ClusterConfig, ClusterTime, Envelope, EventSeq, FencingToken, Inbox, Job, JobId, JoinToken,
    Journal, Level, MemberId, Namespace, Node, Object, Outcome, Principal, Question, RequestId, Run, Seq, Timestamp,
};

/// A whole state without its indexes, which are rebuilt at load. Equal states have equal images: every list has its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateImage {
    /// The cluster that the state belongs to.
    pub cluster_id: u128,
    /// The active feature level.
    pub level: Level,
    /// Entries applied.
    pub seq: Seq,
    /// The chain after them.
    pub chain: [u8; 32],
    /// Wall clock of the last entry.
    pub at: Timestamp,
    /// Cluster clock of the last entry.
    pub clock: ClusterTime,
    /// The last fencing token given out.
    pub grant_seq: FencingToken,
    /// The last event given out.
    pub event_seq: EventSeq,
    /// The last place in the queue given out.
    pub queue_seq: u64,
    /// The last number given to a member that joined.
    pub member_last: MemberId,
    /// Limits.
    pub config: ClusterConfig,
    /// Agent versions by (namespace, name, version).
    pub agents: Vec<Arc<AgentVersion>>,
    /// Nodes by name.
    pub nodes: Vec<NodeImage>,
    /// Jobs by id, each with its live lease.
    pub jobs: Vec<Arc<Job>>,
    /// Ended jobs by the event that ended them.
    pub ended: Vec<EndedImage>,
    /// Remembered requests, oldest first.
    pub requests: Vec<RequestImage>,
    /// What each member's history has confirmed, by member.
    pub sinks: Vec<SinkImage>,
    /// Join tokens by their hash.
    pub join_tokens: Vec<JoinToken>,
    /// The journals of jobs that have not ended, by job.
    pub journals: Vec<JournalImage>,
    /// The envelopes of budgets of jobs that have not ended, by job.
    pub envelopes: Vec<EnvelopeImage>,
    /// The inboxes of jobs that have not ended, by job.
    pub inboxes: Vec<InboxImage>,
    /// Questions by id.
    pub questions: Vec<Arc<Question>>,
    /// Objects by key.
    pub objects: Vec<Arc<Object>>,
    /// Runs by id.
    pub runs: Vec<Arc<Run>>,
    /// Token buckets by what they count.
    pub buckets: Vec<Bucket>,
    /// The progress of the namespaces whose turn is next.
    pub progress: u64,
    /// The progress of namespaces that are ahead of it, by name.
    pub progress_of: Vec<(Namespace, u64)>,
}

/// The envelope of the budget of a job that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvelopeImage {
    /// The job with the budget.
    pub job: JobId,
    pub envelope: Arc<Envelope>,
}

/// The inbox of a job that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxImage {
    pub job: JobId,
    pub inbox: Arc<Inbox>,
}

/// The journal of a job that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalImage {
    /// The job.
    pub job: JobId,
    /// Its steps.
    pub journal: Arc<Journal>,
}

/// A node and what the state notes beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeImage {
    pub node: Arc<Node>,
    /// The last token given out when it advertised its present inventory; older leases may hold more than that has.
    pub inventory_since: FencingToken,
}

/// An ended job and the event that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedImage {
    pub event: EventSeq,
    pub job: JobId,
}

/// A remembered request and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestImage {
    /// Whose it was.
    pub namespace: Namespace,
    /// Who asked.
    pub principal: Principal,
    /// The caller's name for it.
    pub request_id: RequestId,
    pub body_hash: u64,
    /// When it was accepted.
    pub at: ClusterTime,
    /// The first answer.
    pub outcome: Outcome,
}

/// What one member's history has confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SinkImage {
    pub member: MemberId,
    /// The last event it has.
    pub event: EventSeq,
}
