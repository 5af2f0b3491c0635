//! The state itself: its tables and their indexes.

use std::sync::Arc;

use atlas_types::{
    AgentName, AgentVersion, ClusterConfig, ClusterTime, Digest, Envelope, EventSeq, FencingToken, Inbox, JobId,
    JoinToken, Journal, Level, LimitKey, MemberId, Namespace, NodeId, Object, ObjectKind, ObjectName, Question,
    QuestionId, Run, RunId, Seq, Timestamp, Version, level,
};

mod nodes;

use crate::dedupe::Dedupe;
use crate::index::Index;
use crate::jobs::Jobs;
use crate::map::Map;
use crate::node::NodeState;

/// The replicated state. A clone costs nothing and never changes under its reader.
#[derive(Debug, Clone)]
pub struct State {
    pub(crate) cluster_id: u128,
    pub(crate) level: Level,
    pub(crate) seq: Seq,
    pub(crate) chain: [u8; 32],
    pub(crate) at: Timestamp,
    pub(crate) clock: ClusterTime,
    pub(crate) grant_seq: FencingToken,
    pub(crate) event_seq: EventSeq,
    pub(crate) queue_seq: u64,
    pub(crate) config: Arc<ClusterConfig>,
    pub(crate) agents: Map<Namespace, Map<(AgentName, Version), Arc<AgentVersion>>>,
    pub(crate) nodes: Map<NodeId, Arc<NodeState>>,
    /// Ids are unique in the cluster; the namespace comes first in every index.
    pub(crate) jobs: Jobs,
    /// Ended jobs by the event that ended them, for pruning.
    pub(crate) ended: Map<EventSeq, JobId>,
    pub(crate) dedupe: Dedupe,
    pub(crate) sinks: Map<MemberId, EventSeq>,
    pub(crate) join_tokens: Map<Digest, JoinToken>,
    /// The journals of jobs that have not ended.
    pub(crate) journals: Map<JobId, Arc<Journal>>,
    /// What was drawn from the budgets of jobs that have not ended, once there was something.
    pub(crate) envelopes: Map<JobId, Arc<Envelope>>,
    /// The inboxes of jobs that have not ended and had a message.
    pub(crate) inboxes: Map<JobId, Arc<Inbox>>,
    /// The questions of jobs in the state.
    pub(crate) questions: Map<QuestionId, Arc<Question>>,
    /// Objects by namespace, kind and name; an empty map is not kept.
    pub(crate) objects: Map<Namespace, Map<ObjectKind, Map<ObjectName, Arc<Object>>>>,
    /// Runs of chains, with those that ended last.
    pub(crate) runs: Map<RunId, Arc<Run>>,
    /// The last number given to a member that joined: none is given twice.
    pub(crate) member_last: MemberId,
    /// When each token bucket is full that was used and may not be full yet.
    pub(crate) buckets: Map<LimitKey, ClusterTime>,
    /// The progress of the namespaces whose turn is next.
    pub(crate) progress: u64,
    /// The progress of namespaces that may be ahead of it.
    pub(crate) progress_of: Map<Namespace, u64>,
    pub(crate) index: Index,
}

impl State {
    /// The state of a new cluster, before its first entry.
    pub fn new(cluster_id: u128) -> Self {
        Self {
            cluster_id,
            level: level::FIRST,
            seq: Seq::default(),
            chain: [0; 32],
            at: Timestamp::default(),
            clock: ClusterTime::default(),
            grant_seq: FencingToken::default(),
            event_seq: EventSeq::default(),
            queue_seq: 0,
            config: Arc::default(),
            agents: Map::new(),
            nodes: Map::new(),
            jobs: Jobs::default(),
            ended: Map::new(),
            dedupe: Dedupe::default(),
            sinks: Map::new(),
            join_tokens: Map::new(),
            journals: Map::new(),
            envelopes: Map::new(),
            inboxes: Map::new(),
            questions: Map::new(),
            objects: Map::new(),
            runs: Map::new(),
            member_last: MemberId(0),
            buckets: Map::new(),
            progress: 0,
            progress_of: Map::new(),
            index: Index::default(),
        }
    }

    /// Sets the chain after an entry; whoever has the entry's bytes computes it.
    pub fn set_chain(&mut self, chain: [u8; 32]) {
        self.chain = chain;
    }
}
