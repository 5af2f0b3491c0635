//! The answer to a command: its result, or why it was refused. Outcomes are part of the replicas' chain.

use crate::{
    Attempt, ClusterTime, EventSeq, FencingToken, JobId, JobStatus, Level, MemberId, MessageId, NodeEpoch, NodeId,
    RunId, StepKey, StepKind,
};

/// What an accepted command established.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Done, without further results.
    Done,
    /// The job is recorded.
    Submitted {
        /// Its id.
        job: JobId,
        /// True when this is the first answer again: an earlier request with the same id made the job.
        repeated: bool,
    },
    /// The lease is granted.
    Granted {
        token: FencingToken,
        /// Number of the attempt.
        attempt: Attempt,
    },
    /// The job ended, or went back to the queue.
    Ended {
        status: JobStatus,
        /// The retry that follows it.
        retry: Option<JobId>,
    },
    /// The cancel was accepted. A running job ends when its worker has stopped it.
    Cancelled {
        /// False when there was nothing to cancel; nothing changed then (compatibility §6.2).
        accepted: bool,
    },
    NodeRegistered {
        /// Its incarnation.
        epoch: NodeEpoch,
    },
    /// Ended jobs were dropped.
    Pruned {
        /// How many.
        jobs: u64,
    },
    /// The controller may become a member.
    MemberJoined {
        /// Its number.
        member: MemberId,
    },
    /// The join token is known that was made of a salt and the caller's name for the request.
    TokenMade {
        /// The salt: a repeat makes the same token of it.
        salt: u128,
        /// When it ceases to hold.
        expires: ClusterTime,
    },
    /// The job parked, or need not.
    Parked {
        /// True if a wait is over already: nothing changed, and the attempt goes on under its lease.
        ready: bool,
    },
    /// The message is in the inbox, or was.
    Delivered {
        /// True if a message of this id had been delivered before.
        repeated: bool,
    },
    /// The object is as it was asked for.
    ObjectPut {
        /// When it was made.
        uid: EventSeq,
        /// Its last change; equal to the uid if it is new.
        revision: EventSeq,
    },
    /// The run is started, or was.
    RunStarted { run: RunId },
}

/// Why a command was refused. A refusal is an answer: the state is as it was, on every replica.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The queue is at its limit (text: compatibility §6.1).
    #[error("Queue is full ({active} jobs). Wait for jobs to complete or increase max_size.")]
    QueueFull {
        /// Jobs that have not ended.
        active: u64,
    },
    /// A bound on the state other than the queue's is reached.
    #[error("the cluster's limit of {limit} for {what} is reached")]
    LimitReached {
        /// What is bounded, in words.
        what: &'static str,
        /// The bound.
        limit: u64,
    },
    /// An inline payload is larger than the format allows.
    #[error("a payload of {bytes} bytes is too large to be inline")]
    PayloadTooLarge {
        /// Its size.
        bytes: u64,
    },
    /// The same request id came with another body.
    #[error("this request id was used before with another body")]
    RequestConflict,
    /// The drawn job id is taken.
    #[error("the job id {job} is already used")]
    DuplicateJob {
        /// The id.
        job: JobId,
    },
    /// The agent version is not registered, is retired, or has another package by now.
    #[error("the agent version is no longer registered with this package")]
    StaleAgent,
    /// No such agent version.
    #[error("no such agent version")]
    UnknownAgent,
    /// The agent version is not retired.
    #[error("the agent version is not retired")]
    AgentInService,
    /// Jobs that have not ended refer to the agent version.
    #[error("the agent version has {} not ended", if *jobs == 1 { "1 job that has".to_owned() } else { format!("{jobs} jobs that have") })]
    AgentInUse {
        /// How many.
        jobs: u64,
    },
    /// The version is registered with another package, which the command does not replace.
    #[error("the agent version is registered with another package")]
    VersionTaken,
    /// No such job in the state.
    #[error("no such job: {job}")]
    UnknownJob {
        /// The id.
        job: JobId,
    },
    /// The job's status does not allow it.
    #[error("the job is {status:?}")]
    WrongStatus { status: JobStatus },
    /// The job is not in doubt: there is nothing to resolve.
    #[error("the job is not in doubt, it is {status:?}")]
    NotInDoubt { status: JobStatus },
    /// The command needs a feature level that is not active: a member of the cluster runs an older program.
    #[error("this needs feature level {}, which not all members have", needed.0)]
    LevelTooLow {
        /// The level of the command.
        needed: Level,
    },
    /// The report carries an older lease, or one of another node; nothing changes.
    #[error("the lease is outdated")]
    Fenced,
    /// No such node.
    #[error("no such node: {node}")]
    UnknownNode {
        /// The name.
        node: NodeId,
    },
    /// The node was restarted since, or is not ready, or takes no new leases.
    #[error("the node cannot accept this")]
    NodeUnavailable,
    /// The node still holds leases.
    #[error("the node still holds {leases} lease{}", if *leases == 1 { "" } else { "s" })]
    NodeBusy {
        /// How many.
        leases: u64,
    },
    /// The label is to be taken away, and it is not an operator's: the worker would tell it again.
    #[error("the label \"{key}\" is set by the node's worker, not by an operator")]
    LabelOfWorker { key: String },
    /// An inventory lists one GPU more than once.
    #[error("the inventory lists GPU {index} twice")]
    GpuTwice {
        /// Its index.
        index: u32,
    },
    /// The placement does not fit: taken meanwhile, or not what the demand asks.
    #[error("the placement does not fit")]
    DoesNotFit,
    /// Not yet: the backoff has not passed.
    #[error("the job is not due yet")]
    NotDue,
    /// History has not confirmed this far, or the acknowledgement goes beyond the last event.
    #[error("history has not confirmed these events")]
    NotConfirmed,
    /// The join token is none, was used, has expired, or is for something else. The text does not tell which.
    #[error("the join token is unknown, used or expired")]
    TokenRefused,
    /// The parent's contract does not ask for the permission to spawn.
    #[error("Agent does not have spawn_agents permission")]
    SpawnForbidden,
    /// The parent is as deep as jobs may be that spawn others.
    #[error("Max spawn depth ({max}) exceeded at depth {depth}")]
    SpawnTooDeep {
        /// The parent's depth.
        depth: u32,
        /// The configured limit.
        max: u32,
    },
    /// The child would need hardware that its waiting ancestors hold, and that no other node has: it would wait for ever.
    #[error("the child needs hardware that its waiting parents hold")]
    HardwareHeld,
    /// Steps do not follow the last one of the journal.
    #[error("step {from} does not follow the journal, whose next step is {next}")]
    StepGap {
        /// The first step that was sent.
        from: u64,
        /// The next step of the journal.
        next: u64,
    },
    /// A step was recorded before, and differently.
    #[error("step {step} is recorded as {} {recorded} and was sent as {} {sent}, or with another outcome", recorded_kind.as_str(), sent_kind.as_str())]
    StepDiffers {
        /// Its number.
        step: u64,
        /// The kind in the journal.
        recorded_kind: StepKind,
        /// The key in the journal.
        recorded: StepKey,
        /// The kind that was sent.
        sent_kind: StepKind,
        /// The key that was sent.
        sent: StepKey,
    },
    /// The steps are in an artifact already.
    #[error("the steps before {first} are folded, a fold up to step {upto} does not follow")]
    StepsFolded {
        /// How far the new fold goes.
        upto: u64,
        /// The first step that is not folded.
        first: u64,
    },
    /// The state would keep the folded steps, which a fold is there to avoid.
    #[error("a fold must be an artifact, this one is inline")]
    FoldInline,
    /// A job without recorded steps would start again from its beginning.
    #[error("the job has no recorded steps, so it can neither park nor ask")]
    NotJournaled,
    /// Whoever sent it does not know the steps of the journal: an attempt that parks, or a person who forks a job.
    #[error("the journal has {recorded} steps, so nothing can go on after {sent}")]
    JournalLength {
        /// The number of steps that was sent.
        sent: u64,
        /// The number of recorded steps.
        recorded: u64,
    },
    /// The budget has no room for a model call, in billionths of a dollar.
    #[error("{spent} of a budget of {budget} billionths of a dollar are spent, which leaves too little for the call")]
    OverBudget {
        /// The budget.
        budget: u64,
        /// The cost of all recorded calls.
        spent: u64,
    },
    /// The budget may have room for a model call once others are recorded.
    #[error("other calls have reserved what is left of the budget")]
    BudgetReserved,
    /// The attempt that parks has read messages that were never delivered.
    #[error("the job cannot have read {read} messages, its inbox has had {delivered}")]
    MessageGap {
        /// What was sent.
        read: u64,
        /// How many were delivered.
        delivered: u64,
    },
    /// Another message of this id waits in the inbox.
    #[error("the inbox has another message with the id \"{message}\"")]
    MessageConflict {
        /// The id.
        message: MessageId,
    },
    /// A job that waits for nothing would never wake.
    #[error("the job cannot park without anything to wait for")]
    NothingAwaited,
    /// No such question in the state.
    #[error("no such question")]
    UnknownQuestion,
    /// The question was answered, expired, or its job ended.
    #[error("the question is not open any more")]
    QuestionClosed,
    /// The question names who may answer it.
    #[error("the question is for others to answer")]
    NotAnswerer,
    /// The job was not approved, so it cannot be run again: it has to be submitted again, and approved.
    #[error("the job was not approved, so it cannot be run again")]
    Unapproved,
    /// A lease for a job that only a run may carry.
    #[error("a run carries the jobs of this agent; they get no lease")]
    NeedsRun,
    /// A run for a job that only a lease may carry.
    #[error("jobs of this agent run under a lease; no run carries them")]
    NeedsLease,
    /// A run carries one job at a time.
    #[error("the run already carries {job}")]
    RunTaken {
        /// That job.
        job: JobId,
    },
    /// Another run carries the job, or none does.
    #[error("the run does not carry this job")]
    NotCarried,
    /// No such run.
    #[error("no such run: {run}")]
    UnknownRun { run: RunId },
    /// The run has changed since the command was computed, has ended, or its id is taken.
    #[error("the run has changed or ended")]
    StaleRun,
    /// No object of this kind and name.
    #[error("no such object")]
    UnknownObject,
    /// The object is not in the state that the writer expected.
    #[error("the object is at revision {revision}, not at the expected one")]
    ObjectChanged {
        /// Its revision; 0 if there is none.
        revision: EventSeq,
    },
    /// The members of the cluster know no such kind of object.
    #[error("no such kind of object")]
    UnknownObjectKind,
    /// The kind refuses the document. The text of the reason belongs to the door, which checks first.
    #[error("the object is refused by its kind, for \"{field}\"")]
    ObjectRefused {
        /// The member that is refused.
        field: String,
    },
    /// The object cannot be deleted yet.
    #[error("the object is in use by {what}")]
    ObjectInUse {
        /// What uses it, in words.
        what: &'static str,
    },
    /// A bound that the object of the namespace sets is reached.
    #[error("the namespace's limit of {limit} for {what} is reached")]
    NamespaceLimit {
        /// What is bounded, in words.
        what: &'static str,
        /// The bound.
        limit: u64,
    },
    /// The decision about the job is missing, or was made under another selection of orchestrators.
    #[error("the routing decision about the job is outdated")]
    RouteOutdated,
    /// The command panicked while it was planned; it was never proposed.
    #[error("internal error: this command could not be planned")]
    Internal,
}

impl Rejection {
    /// Every `what` of [`Self::LimitReached`], [`Self::ObjectInUse`] and [`Self::NamespaceLimit`]. A format reads a text back only if it
    /// is one of these.
    pub const LIMITS: [&'static str; 31] = [
        "jobs",
        "payload bytes",
        "nodes",
        "agent versions",
        "members with a history",
        "warm packages of a node",
        "running jobs of this agent",
        "join tokens",
        "labels of a node",
        "numbers of members",
        "labels",
        "journal bytes",
        "journal bytes of a job",
        "folds of a journal",
        "waits of a job",
        "messages of a job",
        "message bytes of a job",
        "objects",
        "pending jobs",
        "bytes of inputs",
        "runs",
        "steps of a run",
        "questions of a job",
        "options of a question",
        "calls of orchestrators",
        "running jobs",
        "running jobs of this key",
        "starts of jobs",
        "starts of jobs of this agent",
        "starts of jobs of this key",
        "waiting jobs, whose order would change",
    ];
}
