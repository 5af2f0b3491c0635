//! Commands: what may be asked of the state. One struct a command; `atlas-state` has one file a command with its `apply`.
//!
//! A command carries results, never questions: versions are resolved, inputs validated and placements chosen before.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{
    AgentKind, AgentName, AgentPin, Allocation, BootId, ClusterConfig, Digest, EventSeq, Failure, FencingToken,
    Inventory, JobId, JoinKind, Level, MemberId, Micros, NodeEpoch, NodeId, Origin, Payload, RunSpec, Seq, Timestamp,
    Version,
};

/// A command and who asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Who asked.
    pub origin: Origin,
    /// What for.
    pub command: Command,
}

/// What may be asked of the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Publishes an agent version.
    RegisterAgent(RegisterAgent),
    /// Takes an agent version out of service.
    RetireAgent(RetireAgent),
    /// A worker process says hello under a node's name.
    RegisterNode(RegisterNode),
    /// Stops new leases on a node until it is empty.
    DrainNode(DrainNode),
    /// Stops or allows new leases on a node.
    Cordon(Cordon),
    /// Forgets a node.
    RemoveNode(RemoveNode),
    /// A node's session was lost: it is down and all its leases are lost.
    LoseNode(LoseNode),
    /// A node's idle warm slots changed outside of a job's end.
    WarmChanged(WarmChanged),
    /// Submits a job.
    SubmitJob(SubmitJob),
    /// Gives one node the right to run one attempt.
    GrantLease(GrantLease),
    /// Commits that an attempt starts, before a job that must not run twice runs.
    StartJob(StartJob),
    /// An attempt ended well.
    CompleteJob(CompleteJob),
    /// An attempt ended badly.
    FailJob(FailJob),
    /// A job that waits can never run, or waited too long.
    FailPending(FailPending),
    /// Cancels a job.
    CancelJob(CancelJob),
    /// One lease is lost, its node lives.
    LoseLease(LoseLease),
    /// A back-off has passed.
    WakeJob(WakeJob),
    /// A person asks for an ended job to be run again, as a new job.
    RetryJob(RetryJob),
    /// A member's history has everything up to an event.
    SinkAck(SinkAck),
    /// Drops ended jobs that history has.
    PruneJobs(PruneJobs),
    /// Changes limits.
    ConfigureCluster(ConfigureCluster),
    /// Decides what becomes of a job in doubt.
    ResolveJob(ResolveJob),
    /// A member tells the digest of its state.
    ReportDigest(ReportDigest),
    /// Makes a join token known.
    CreateJoinToken(CreateJoinToken),
    /// Takes a join token back.
    RevokeJoinToken(RevokeJoinToken),
    /// A controller joins with a token.
    JoinMember(JoinMember),
    /// Says that new jobs had better not use an agent version, or takes that back.
    DeprecateAgent(DeprecateAgent),
    /// A parent waits no longer for a child, which is cancelled.
    ForsakeChild(ForsakeChild),
    /// Gives a node labels, or takes them away.
    LabelNode(LabelNode),
}

impl Command {
    /// The feature level that knows the command: the head proposes it only once that is active (design §2).
    pub fn level(&self) -> Level {
        match self {
            // An older program would go on checking.
            Self::RegisterNode(command) if command.inventory.unchecked => Level(2),
            // It would not keep what these say beyond what it knows.
            Self::RegisterAgent(command) if command.spec.spawns => Level(3),
            Self::SubmitJob(command) if command.spawner.is_some() || command.not_before.is_some() => Level(3),
            Self::ConfigureCluster(command) if command.config.needs_level_3() => Level(3),
            Self::CreateJoinToken(command) if command.salt.is_some() => Level(3),
            Self::DrainNode(command) if command.deadline.is_some() => Level(4),
            Self::RegisterAgent(_)
            | Self::RetireAgent(_)
            | Self::RegisterNode(_)
            | Self::DrainNode(_)
            | Self::Cordon(_)
            | Self::RemoveNode(_)
            | Self::LoseNode(_)
            | Self::WarmChanged(_)
            | Self::SubmitJob(_)
            | Self::GrantLease(_)
            | Self::StartJob(_)
            | Self::CompleteJob(_)
            | Self::FailJob(_)
            | Self::FailPending(_)
            | Self::CancelJob(_)
            | Self::LoseLease(_)
            | Self::WakeJob(_)
            | Self::RetryJob(_)
            | Self::SinkAck(_)
            | Self::PruneJobs(_)
            | Self::ConfigureCluster(_) => Level(1),
            Self::ResolveJob(_)
            | Self::ReportDigest(_)
            | Self::CreateJoinToken(_)
            | Self::RevokeJoinToken(_)
            | Self::JoinMember(_) => Level(2),
            Self::DeprecateAgent(_) | Self::ForsakeChild(_) => Level(3),
            Self::LabelNode(_) => Level(4),
        }
    }
}

/// Publishes an agent version; the same name and version again replaces the entry, jobs keep what they are pinned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterAgent {
    /// Its name.
    pub name: AgentName,
    /// Its version.
    pub version: Version,
    /// Its package.
    pub digest: Digest,
    /// Size of the package.
    pub package_bytes: u64,
    /// Agent or orchestrator.
    pub kind: AgentKind,
    /// For search.
    pub capabilities: Vec<String>,
    /// The normalised contract, JSON.
    pub contract: Payload,
    /// How its jobs run.
    pub spec: Arc<RunSpec>,
    /// Free-form labels.
    pub labels: BTreeMap<String, String>,
}

/// Takes an agent version out of service; jobs that have it pinned finish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetireAgent {
    /// Its name.
    pub name: AgentName,
    /// Its version.
    pub version: Version,
}

/// Says that new jobs had better not use an agent version, which goes on taking them, or takes that back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeprecateAgent {
    /// Its name.
    pub name: AgentName,
    /// Its version.
    pub version: Version,
    /// What people are told; none takes it back.
    pub why: Option<Arc<str>>,
}

/// A worker's hello. A new boot id is a new epoch and loses the older epoch's leases; the same boot id is a resume, which
/// is proposed only if the inventory changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterNode {
    /// The node's name.
    pub node: NodeId,
    /// The process that claims it.
    pub boot_id: BootId,
    /// What it has.
    pub inventory: Inventory,
}

/// Stops new leases on a node until it is empty; a new epoch of the node ends the drain. The latest one holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainNode {
    /// The node.
    pub node: NodeId,
    /// After so long its worker gives back what still runs; none lets everything finish.
    pub deadline: Option<Micros>,
}

/// Stops or allows new leases on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cordon {
    /// The node.
    pub node: NodeId,
    /// True stops new leases, false allows them again and ends a drain.
    pub cordoned: bool,
}

/// Gives a node labels, which go over those that its worker tells, or takes such labels away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelNode {
    /// The node.
    pub node: NodeId,
    /// Values by key; none takes the operator's label away, so that the worker's counts again if there is one.
    pub labels: BTreeMap<String, Option<String>>,
}

/// Forgets a node that holds no lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoveNode {
    /// The node.
    pub node: NodeId,
}

/// A node's session was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoseNode {
    /// The node.
    pub node: NodeId,
    /// The incarnation that was lost; another one makes this a stale command.
    pub epoch: NodeEpoch,
}

/// A node's idle warm slots changed outside of a job's end: evicted, or warmed ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmChanged {
    /// The node.
    pub node: NodeId,
    /// The incarnation that reports.
    pub epoch: NodeEpoch,
    /// The package whose slots changed.
    pub digest: Digest,
    /// Idle warm slots of that package now.
    pub idle: u32,
}

/// What the door found when it resolved the agent and validated the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The job may run; `apply` checks that this version is still registered with this digest.
    Accepted(AgentPin),
    /// The job is accepted and fails at once: pending → running → failed in one entry (design §3.1).
    Refused {
        /// The version, if one was found.
        pin: Option<AgentPin>,
        /// Why.
        failure: Failure,
    },
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
    /// Overrides the contract's execution timeout.
    pub execution_timeout: Option<Micros>,
    /// The attempt that spawns it; none for a client's own.
    pub spawner: Option<Spawner>,
    /// It may not run before this time.
    pub not_before: Option<Timestamp>,
}

/// The attempt that spawns a job: only while it holds its lease may it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spawner {
    /// The parent.
    pub job: JobId,
    /// Its lease.
    pub token: FencingToken,
}

impl Spawner {
    /// The id of the child that it asks for under a number: the same whenever it asks again.
    pub fn child(self, number: u64) -> JobId {
        // Far from the numbers by which retries get theirs.
        self.job.derive(!self.token.0).derive(number)
    }
}

/// Gives one node the right to run one attempt of a pending job. The token is the state's next `grant_seq`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantLease {
    /// The job.
    pub job: JobId,
    /// Who shall run it.
    pub node: NodeId,
    /// The incarnation that was planned on.
    pub epoch: NodeEpoch,
    /// What it takes; `apply` checks that it is free and that it covers the demand.
    pub allocation: Allocation,
}

/// Commits that an attempt starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartJob {
    /// The job.
    pub job: JobId,
    /// The reporting node.
    pub node: NodeId,
    /// Its lease.
    pub token: FencingToken,
}

/// What an attempt measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Duration of `on_startup`; 0 in a reused slot.
    pub warmup: Micros,
    /// Duration of `execute`.
    pub execution: Micros,
    /// True when the slot was reused.
    pub warm: bool,
    /// Idle warm slots of the package on the node, after this attempt.
    pub idle: u32,
}

/// An attempt ended with a valid output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompleteJob {
    /// The job.
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
    /// The job.
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
    /// The job.
    pub job: JobId,
    /// Why.
    pub failure: Failure,
}

/// Cancels a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelJob {
    /// The job.
    pub job: JobId,
    /// False cancels a pending job only (spec §6.2); true also stops a running one.
    pub running: bool,
}

/// One lease is lost although its node lives: the node says that it does not have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoseLease {
    /// The job.
    pub job: JobId,
    /// The lost lease.
    pub token: FencingToken,
}

/// Puts a job whose back-off has passed in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WakeJob {
    /// The job.
    pub job: JobId,
}

/// Runs an ended job again, as a new job linked to the first of the family; does not count against `retry.max_retries`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryJob {
    /// The ended job.
    pub job: JobId,
    /// The new job's id, drawn at the door.
    pub id: JobId,
}

/// A member's history has everything up to an event, synced to disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkAck {
    /// The member.
    pub member: MemberId,
    /// The last event it has.
    pub event_seq: EventSeq,
}

/// Drops ended jobs up to an event; refused beyond what a majority of the named voters has acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PruneJobs {
    /// The voters of the group when this was planned.
    pub voters: Vec<MemberId>,
    /// Jobs that ended at or before this event go.
    pub event_seq: EventSeq,
    /// At most so many in one entry.
    pub limit: u32,
}

/// Replaces the replicated configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigureCluster {
    /// The new configuration, whole.
    pub config: ClusterConfig,
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

/// Decides what becomes of a job that is in doubt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolveJob {
    /// The job.
    pub job: JobId,
    /// What was found.
    pub resolution: Resolution,
}

/// A member's digest of its whole state. It changes nothing: every member compares it with its own (B.40).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportDigest {
    /// The member.
    pub member: MemberId,
    /// Entries applied to the state that it is of.
    pub seq: Seq,
    /// BLAKE3 over the state as a snapshot has it.
    pub digest: [u8; 32],
}

/// Makes a join token known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreateJoinToken {
    /// SHA-256 of the token; the token itself is nowhere in the log.
    pub hash: Digest,
    /// Whom it lets in.
    pub kind: JoinKind,
    /// How long it holds, an hour at most.
    pub ttl: Micros,
    /// How often it can be used.
    pub uses: u32,
    /// What the token was made of besides its caller's name for the request, which the log does not have; none if it was drawn.
    pub salt: Option<u128>,
}

/// Takes a join token back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RevokeJoinToken {
    /// SHA-256 of the token.
    pub hash: Digest,
}

/// A controller joins with a token, which is used up by it, and gets a number that no member had before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinMember {
    /// SHA-256 of its token.
    pub hash: Digest,
    /// The highest number in the group's membership: the members that formed the group never joined.
    pub above: MemberId,
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
