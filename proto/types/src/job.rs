//! Jobs, and their submission.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::{
    AgentName, AgentPin, AgentVersion, Approvals, Attempt, Carried, ClusterTime, Door, Evidence, Failure, JobId,
    JobStatus, Journal, Lease, Level, Micros, Namespace, NodeId, ObjectName, Origin, Parked, Payload, PolicyRef,
    Principal, QuestionRule, Reason, RequestId, Route, RunSpec, Seq, SpawnedBy, StepOf, Timestamp, TraceContext,
    Verdict, level,
};

/// A label of jobs whose payloads were erased.
pub const ERASED_LABEL: &str = "atlas.erased";

/// Of a job that another one spawned: whose child it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spawned {
    /// The parent.
    pub by: JobId,
    /// 1 is the child of a job that a client submitted.
    pub depth: u32,
    /// The attempt that spawned it waits for it, or for what follows it, until it has ended. The parent lends its place meanwhile.
    pub awaited: bool,
}

/// Of a job that began with the first steps of another one's journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    /// The other job.
    pub from: JobId,
    /// How many steps it began with. Zero in a retry, which begins without them.
    pub steps: u64,
    /// After these steps its version and model count as they are now, and not what the other job was fixed to.
    pub changed: bool,
    /// The model or tier that it calls in place of the one in its contract.
    pub model: Option<ObjectName>,
}

/// Members of a job's metadata that Atlas adds for people: the type of an exception whose text means nothing alone, the code of an
/// error whose text is that of another service, where an output breaks its schema, why a model was stopped, which limits were
/// enforced, which models could be reached, who called a skill, and what a large input names. Clients of Atlas for Python do not see them.
pub const METADATA_OURS: [&str; 12] = [
    "_error_type",
    "_error_why",
    "_error_code",
    "_error_kind",
    "_error_at",
    "_halted",
    "_limits",
    "_models",
    "_sandbox",
    KEPT_METADATA,
    CALLED_FROM_METADATA,
    NAMED_METADATA,
];

/// The member of the metadata of a run of a skill with the namespace that called it. Only controllers set it, and no attempt removes it.
pub const CALLED_FROM_METADATA: &str = "_called_from";

/// The member of the metadata of a job whose input is an artifact with those members of the input that name its models and servers, an
/// object. Only controllers set it, and no attempt removes it.
pub const NAMED_METADATA: &str = "_named";

/// The member of a job's metadata with the name of the conversation of which the job is a turn. Only controllers set it.
pub const CONVERSATION_METADATA: &str = "_conversation";

/// The member of a job's metadata with what its agent keeps for the next turn of the conversation.
pub const KEPT_METADATA: &str = "_kept";

/// The member of a job's metadata that says why a spawned job is no turn of the session of its agent.
pub const LEFT_METADATA: &str = "_session_left";

/// The metadata of all jobs that have none, and their labels: waiting jobs are many.
static NO_METADATA: LazyLock<Arc<[u8]>> = LazyLock::new(|| (*b"{}").into());
static NO_LABELS: LazyLock<Arc<BTreeMap<String, String>>> = LazyLock::new(Arc::default);

/// One request to run one agent version on one input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Whose it is.
    pub namespace: Namespace,
    /// Its id, unique in the cluster.
    pub id: JobId,
    /// The agent that was asked for.
    pub agent: AgentName,
    /// The version it is pinned to; none if the agent was unknown at submission.
    pub pin: Option<AgentPin>,
    /// How it runs; none if the agent was unknown.
    pub spec: Option<Arc<RunSpec>>,
    pub status: JobStatus,
    /// Why it is not further, while it has not ended.
    pub reason: Reason,
    /// Higher runs first.
    pub priority: i64,
    /// Its place among equals: a counter of the state, kept over lost leases.
    pub queue_seq: u64,
    /// The entry that submitted it.
    pub submitted_seq: Seq,
    /// The input, JSON.
    pub input: Payload,
    /// The output, JSON; kept when only its validation failed.
    pub output: Option<Payload>,
    /// Set when it failed.
    pub failure: Option<Failure>,
    /// When it was submitted.
    pub created_at: Timestamp,
    /// When its latest lease was granted, or a run began to carry it.
    pub started_at: Timestamp,
    /// When it ended.
    pub completed_at: Timestamp,
    /// When it was submitted or woke up, on the clock of timeouts.
    pub queued_at: ClusterTime,
    /// Duration of `on_startup` in the attempt that ended it; 0 when a warm slot was reused.
    pub warmup: Micros,
    /// Duration of `execute` in the attempt that ended it.
    pub execution: Micros,
    /// True when the attempt that ended it ran in a reused slot.
    pub warm: bool,
    /// How many leases it has had.
    pub attempt: Attempt,
    /// How many of its leases ended because it parked. All others that ended without an end of the job were lost.
    pub parks: u32,
    /// How long the attempts that parked have run.
    pub used: Micros,
    /// What it waits for while it is parked.
    pub parked: Option<Arc<Parked>>,
    /// The latest time for which it was parked and that came: over for good, whatever a wall clock shows later.
    pub slept_until: Timestamp,
    /// The node of its latest lease; kept when it has ended.
    pub node: Option<NodeId>,
    /// Its live lease.
    pub lease: Option<Arc<Lease>>,
    /// The run that carries it; kept when it has ended.
    pub carried: Option<Carried>,
    /// Which retry of its family it is; 0 is the first job.
    pub retry_count: u32,
    /// The first job of its family, if it is a retry.
    pub original: Option<JobId>,
    /// The retry that follows it, once there is one.
    pub successor: Option<JobId>,
    /// Whose child it is, if another job spawned it.
    pub spawned: Option<Spawned>,
    /// Metadata, a JSON object; keys that start with `_` are ours.
    pub metadata: Arc<[u8]>,
    /// Free-form labels.
    pub labels: Arc<BTreeMap<String, String>>,
    /// Overrides the contract's timeout of an attempt.
    pub execution_timeout: Option<Micros>,
    /// Who asked.
    pub principal: Principal,
    pub door: Door,
    /// The caller's idempotency key.
    pub request_id: Option<RequestId>,
    /// The caller's trace.
    pub trace: Option<TraceContext>,
    /// The artifact with its log lines and progress, once it ended. In a box, because a waiting job has none.
    pub stream: Option<Box<Payload>>,
    /// The steps it recorded, once it ended; until then the state keeps them beside the job.
    pub journal: Option<Arc<Journal>>,
    /// The credential of its caller goes with its leases: it neither parks nor is retried by itself.
    pub bearer: bool,
    /// Most that its model calls may cost, in billionths of a dollar. A retry has the same budget for itself.
    pub budget_nanodollars: Option<u64>,
    /// The step of a run for which it runs.
    pub step: Option<StepOf>,
    /// What its agent is told about the chain, a JSON object. In a box, because most jobs have none.
    pub context: Option<Box<Payload>>,
    /// The job whose first steps it began with.
    pub fork: Option<Arc<Fork>>,
    /// What happens to its questions to people. A retry has the same rule.
    pub questions: QuestionRule,
    /// How it was routed; none if the default orchestrator allowed it.
    pub route: Option<Arc<Route>>,
    /// What its receipt says beside the rest; none if there is nothing.
    pub evidence: Option<Arc<Evidence>>,
    /// The approvals that policies demand; none if no policy asks.
    pub approvals: Option<Arc<Approvals>>,
    /// It waits while no registered node could run it. A retry does so too.
    pub waits_for_node: bool,
    /// What it is about, a sentence for people. A retry has the same.
    pub title: Option<Arc<str>>,
}

impl Job {
    /// A job with what every job has when it is submitted. Whoever wants more says what: `Job { priority, ..Job::new(…) }`.
    pub fn new(id: JobId, agent: AgentName, input: Payload, origin: &Origin) -> Self {
        Self {
            namespace: origin.namespace.clone(),
            id,
            agent,
            pin: None,
            spec: None,
            status: JobStatus::Pending,
            reason: Reason::Queued,
            priority: 0,
            queue_seq: 0,
            submitted_seq: Seq::default(),
            input,
            output: None,
            failure: None,
            created_at: Timestamp::NOT_YET,
            started_at: Timestamp::NOT_YET,
            completed_at: Timestamp::NOT_YET,
            queued_at: ClusterTime::default(),
            warmup: Micros::default(),
            execution: Micros::default(),
            warm: false,
            attempt: Attempt::default(),
            parks: 0,
            used: Micros::default(),
            parked: None,
            slept_until: Timestamp::NOT_YET,
            node: None,
            lease: None,
            carried: None,
            retry_count: 0,
            original: None,
            successor: None,
            spawned: None,
            metadata: Arc::clone(&NO_METADATA),
            labels: Arc::clone(&NO_LABELS),
            execution_timeout: None,
            principal: origin.principal.clone(),
            door: origin.door,
            request_id: origin.request_id.clone(),
            trace: origin.trace,
            stream: None,
            journal: None,
            bearer: false,
            budget_nanodollars: None,
            step: None,
            context: None,
            fork: None,
            questions: QuestionRule::Fail,
            route: None,
            evidence: None,
            approvals: None,
            waits_for_node: false,
            title: None,
        }
    }

    /// Shares what it has in common with other jobs: that it has no metadata or no labels, and the names of its agent's version.
    pub fn share(&mut self, version: Option<&AgentVersion>) {
        if *self.metadata == **NO_METADATA {
            self.metadata = Arc::clone(&NO_METADATA);
        }
        if self.labels.is_empty() {
            self.labels = Arc::clone(&NO_LABELS);
        }
        if let Some(version) = version.filter(|version| version.name == self.agent) {
            self.agent = version.name.clone();
        }
        if let Some(version) = version.filter(|version| version.namespace == self.namespace) {
            self.namespace = version.namespace.clone();
        }
    }

    /// The job without what was sent to it and what it made, marked by the label [`ERASED_LABEL`].
    pub fn without_payloads(&self) -> Self {
        let mut labels = (*self.labels).clone();
        labels.insert(ERASED_LABEL.to_owned(), "true".to_owned());
        let erased = |failure: &Failure| Failure { kind: failure.kind, error: "erased".into() };
        Self {
            input: Payload::inline(b"{}"),
            output: self.output.as_ref().map(|_| Payload::inline(b"{}")),
            failure: self.failure.as_ref().map(erased),
            metadata: b"{}".as_slice().into(),
            labels: labels.into(),
            stream: None,
            journal: None,
            context: None,
            parked: None,
            fork: None,
            title: None,
            ..self.clone()
        }
    }

    /// Bytes that it has in the state beside its labels.
    pub fn inline_bytes(&self) -> u64 {
        let made = [self.output.as_ref(), self.stream.as_deref()].into_iter().flatten();
        let made: u64 = made.map(Payload::inline_bytes).sum();
        self.asked_bytes() + made + self.journal.as_ref().map_or(0, |journal| journal.bytes())
    }

    /// The bytes among these with which another job for the same work begins.
    pub fn asked_bytes(&self) -> u64 {
        let context = self.context.as_deref().map_or(0, Payload::inline_bytes);
        let title = self.title.as_ref().map_or(0, |title| title.len() as u64);
        self.input.inline_bytes() + context + title + self.metadata.len() as u64
    }

    /// Whether it is a job of the cluster itself, in which an orchestrator is called. It is in a namespace of its own and does not count as a job of
    /// the cluster.
    pub fn is_system(&self) -> bool {
        self.namespace.is_system()
    }

    /// Whether it has all approvals that policies demand.
    pub fn is_approved(&self) -> bool {
        self.approvals.as_ref().is_none_or(|approvals| approvals.is_complete())
    }

    /// Whether it waits while no registered node could ever run it. One that parked has started, and a retry would start without its
    /// recorded steps.
    pub fn is_patient(&self) -> bool {
        self.waits_for_node || self.has_parked()
    }

    /// How many jobs above it spawned one another: 0 for a client's own.
    pub fn depth(&self) -> u32 {
        self.spawned.map_or(0, |spawned| spawned.depth)
    }

    /// The parent, while the attempt that spawned this job waits for it.
    pub fn awaited_by(&self) -> Option<JobId> {
        self.spawned.filter(|spawned| spawned.awaited && !self.status.is_terminal()).map(|spawned| spawned.by)
    }

    /// The first job of its family.
    pub fn first(&self) -> JobId {
        self.original.unwrap_or(self.id)
    }

    /// After how many recorded steps its version and model are determined again.
    pub fn fork_steps(&self) -> Option<u64> {
        self.fork.as_ref().filter(|fork| fork.changed && fork.steps > 0).map(|fork| fork.steps)
    }

    /// The run that carries it now.
    pub fn carrier(&self) -> Option<Carried> {
        self.carried.filter(|_| !self.status.is_terminal())
    }

    /// Whether its agent's version says that runs carry its jobs, so that it never gets a lease.
    pub fn is_for_a_run(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| spec.carried)
    }

    /// Whether it ever parked: it has started, and its next attempt continues after its recorded steps.
    pub fn has_parked(&self) -> bool {
        self.parks > 0
    }

    /// Leases that count against the attempts of its contract: all but those that ended because it parked.
    pub fn attempts_counted(&self) -> u32 {
        self.attempt.0.saturating_sub(self.parks)
    }

    /// Time that its next or present attempt has left; none without a version.
    pub fn execution_left(&self) -> Option<Micros> {
        let limit = self.execution_timeout.or(self.spec.as_ref().map(|spec| spec.timeouts.execution))?;
        // A limit of nothing could mean none to whoever runs it.
        Some(Micros(limit.0.saturating_sub(self.used.0).max(limit.0.min(1))))
    }
}

/// Submits a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmitJob {
    /// Drawn at the door.
    pub id: JobId,
    /// The agent asked for.
    pub agent: AgentName,
    /// What the door found.
    pub verdict: Verdict,
    /// The input, JSON.
    pub input: Payload,
    /// Higher runs first.
    pub priority: i64,
    /// A JSON object.
    pub metadata: Arc<[u8]>,
    /// Free-form labels.
    pub labels: Arc<BTreeMap<String, String>>,
    /// Overrides the contract's timeout of an attempt.
    pub execution_timeout: Option<Micros>,
    /// Who spawns it; none for a client's own.
    pub spawner: Option<SpawnedBy>,
    /// It may not run before this time.
    pub not_before: Option<Timestamp>,
    /// The credential of its caller goes with its leases. Controllers keep that in memory only.
    pub bearer: bool,
    /// Most that its model calls may cost, in billionths of a dollar.
    pub budget_nanodollars: Option<u64>,
    /// What the agent of a step is told about the chain, a JSON object. Only steps of runs have it.
    pub context: Option<Payload>,
    /// What happens to its questions to people.
    pub questions: QuestionRule,
    /// The policies that allowed it.
    pub policies: Vec<PolicyRef>,
    /// It waits while no registered node could run it. Without this it fails.
    pub waits_for_node: bool,
    /// What it is about, a sentence of at most [`Self::TITLE_MAX`] characters for people.
    pub title: Option<Arc<str>>,
}

impl SubmitJob {
    /// Most characters of a title.
    pub const TITLE_MAX: usize = 200;

    /// A job with what every job has. Whoever wants more says what: `SubmitJob { priority, ..SubmitJob::new(…) }`.
    pub fn new(id: JobId, agent: AgentName, verdict: Verdict, input: Payload) -> Self {
        Self {
            id,
            agent,
            verdict,
            input,
            priority: 0,
            metadata: (*b"{}").into(),
            labels: Arc::default(),
            execution_timeout: None,
            spawner: None,
            not_before: None,
            bearer: false,
            budget_nanodollars: None,
            context: None,
            questions: QuestionRule::Fail,
            policies: Vec::new(),
            waits_for_node: false,
            title: None,
        }
    }

    /// The feature level that knows all that it says: an older program would not keep it.
    pub(crate) fn level(&self) -> Level {
        let said = [
            (matches!(self.verdict, Verdict::Asked { .. }), level::APPROVALS),
            (!self.policies.is_empty(), level::EVIDENCE),
            (self.waits_for_node, level::WAITING_FOR_NODES),
            (self.title.is_some(), level::TITLES),
            (self.bearer, level::ATTACHMENTS),
            (self.questions != QuestionRule::Fail, level::QUESTIONS),
            (self.budget_nanodollars.is_some(), level::BUDGETS),
            (matches!(self.spawner, Some(SpawnedBy::Run { .. })), level::CARRY),
            (self.spawner.is_some(), level::SPAWN),
            (self.not_before.is_some(), level::NOT_BEFORE),
        ];
        said.into_iter().filter(|(is_said, _)| *is_said).map(|(_, level)| level).max().unwrap_or(level::FIRST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million jobs may wait. What is shared has two counters, and the allocator knows 768 bytes and then 896.
    #[test]
    fn a_job_fits_into_768_bytes() {
        let bytes = size_of::<Job>() + 2 * size_of::<usize>();
        assert!(bytes <= 768, "{bytes} bytes");
    }
}
