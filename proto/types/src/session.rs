//! Messages between the leader and a worker over the worker's session.

use std::sync::Arc;

use crate::{
    AgentName, Allocation, Attachments, Attempt, ClusterTime, Digest, Failure, FencingToken, JobId, Journal, Message,
    Micros, Namespace, Payload, Spawner, StepKey, Timestamp, TraceContext, Usage, Version,
};

/// A granted lease with all that a worker needs to run the attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The job's namespace.
    pub namespace: Namespace,
    pub job: JobId,
    /// The lease's token; every report carries it.
    pub token: FencingToken,
    /// Number of the attempt.
    pub attempt: Attempt,
    pub agent: AgentName,
    pub version: Version,
    /// Its package.
    pub digest: Digest,
    /// Size of the package.
    pub package_bytes: u64,
    /// The input, JSON.
    pub input: Payload,
    /// The job's metadata, a JSON object.
    pub metadata: Arc<[u8]>,
    /// What the agent is told about the chain of which the job is a step, a JSON object.
    pub context: Option<Payload>,
    /// What the lease holds.
    pub allocation: Allocation,
    /// Longest start-up of a slot.
    pub startup_timeout: Micros,
    /// Longest time of the attempt, start-up not counted.
    pub execution_timeout: Micros,
    /// The time for all attempts that the submission states; none if the limit is that of the contract.
    pub submitted_timeout: Option<Micros>,
    /// The attempt must not run before its start is committed.
    pub needs_start: bool,
    /// Which retry of its family the job is.
    pub retry_count: u32,
    /// The caller's trace.
    pub trace: Option<TraceContext>,
    /// What it may spawn; none where the controller knows no spawning.
    pub spawn: Option<SpawnRule>,
    /// Why it fails instead of running: agents or credentials are missing that it requires.
    pub lacks: Option<Arc<str>>,
    /// Secrets, a bearer and models, for this attempt alone.
    pub attachments: Attachments,
    /// Most that the model calls of the job may cost in all its attempts, in billionths of a dollar: its own budget, or that of a job above it,
    /// whose whole tree draws on it.
    pub budget_nanodollars: Option<u64>,
    /// After how many recorded steps the job's version and model are determined again: it is a fork with other ones.
    pub fork_steps: Option<u64>,
    /// The journal that the attempt continues; none where the cluster keeps no journals.
    pub journal: Option<Box<AssignedJournal>>,
}

/// The journal of a job as the holder of its lease gets it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AssignedJournal {
    /// The recorded steps; those after the last fold are missing if they are in `unfolded`.
    pub journal: Arc<Journal>,
    /// The steps after the last fold as one artifact, where the frame had no room for them.
    pub unfolded: Option<Payload>,
    /// Messages in the job's inbox.
    pub mail: Mail,
    /// The latest time for which the job was parked and that has come.
    pub slept_until: Timestamp,
}

/// Consecutive messages of an inbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mail {
    /// The number of the first message.
    pub first: u64,
    pub messages: Vec<Arc<Message>>,
}

impl Mail {
    /// Bytes of the messages' payloads.
    pub fn bytes(&self) -> u64 {
        self.messages.iter().map(|message| message.payload.inline_bytes()).sum()
    }
}

/// The worker of a drained node returns its jobs: those that wait at once, the others by the deadline if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandBack {
    /// None lets running jobs take their time.
    pub deadline: Option<HandBackDeadline>,
}

/// By when the worker of a drained node returns its running jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandBackDeadline {
    /// The deadline by the cluster's clock, which a worker does not have: it tells one deadline from another.
    pub until: ClusterTime,
    /// What is left of it, as far as the leader knows.
    pub within: Micros,
}

/// What an attempt may spawn, by its contract and its depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpawnRule {
    /// How many jobs above it spawned one another; 0 for a client's own.
    pub depth: u32,
    /// A job of this depth may not spawn.
    pub depth_max: u32,
    /// Its contract asks for the permission.
    pub permitted: bool,
}

/// A job that an attempt spawns and waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spawn {
    /// The parent and its lease.
    pub spawner: Spawner,
    /// The agent that the child is for, or the skill, as the parent wrote it.
    pub agent: String,
    /// Whether it is a skill.
    pub skill: bool,
    /// The child's input, JSON.
    pub input: Payload,
    /// Higher runs first.
    pub priority: i64,
    /// How long the parent waits from now on.
    pub timeout: Micros,
    /// It was said before, on another session or with more time.
    pub again: bool,
    /// The step of the journal to which the child belongs; none for an agent without a journal.
    pub step: Option<SpawnStep>,
}

/// The step of a journal that spawns a job. A later attempt of the parent that asks for the same step gets the same child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpawnStep {
    /// The number of the step.
    pub number: u64,
    /// The hash of the request.
    pub key: StepKey,
}

impl SpawnStep {
    /// Keeps these ids apart from those of retries and of children that belong to a lease.
    const FAMILY: u64 = u64::MAX / 3;

    /// The id of the child of a parent.
    pub fn child(self, parent: JobId) -> JobId {
        self.key.derive(parent.derive(Self::FAMILY).derive(self.number))
    }
}

impl Spawn {
    /// The id of the child that is asked for under a number.
    pub fn child(&self, number: u64) -> JobId {
        let Spawner { job, .. } = self.spawner;
        self.step.map_or_else(|| self.spawner.child(number), |step| step.child(job))
    }
}

/// The tool by which a worker gets the access token of a model or an MCP server with a login. Programs cannot call it.
pub const MODEL_TOKEN: &str = "$model-token";

/// What the names of the tools begin with by which a worker helps an agent with its helpers, its team and their questions. Programs cannot
/// call them.
pub const TEAM: &str = "$team-";

/// What the names of the tools begin with by which a worker hands documents of the sources of a document base over. Programs cannot call them.
pub const COLLECT: &str = "$documents-";

/// Whether a tool is for workers alone.
pub fn is_hidden(tool: &str) -> bool {
    tool.starts_with('$')
}

impl ToolRequest {
    /// The tool by which a worker asks people for a durable program. Programs cannot call it.
    pub const QUESTION: &str = "$question";
}

/// A tool of the platform that an attempt calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRequest {
    /// The attempt's job and its lease.
    pub caller: Spawner,
    /// The tool, such as `atlas.registry.list`.
    pub tool: String,
    /// A JSON object.
    pub arguments: Arc<[u8]>,
    /// The same in each attempt that makes the call again.
    pub key: StepKey,
    /// It was said before, on another session or by an earlier attempt.
    pub again: bool,
}

impl ToolRequest {
    /// Keeps the ids of spawned jobs apart from those of retries and children.
    const SPAWNED: u64 = u64::MAX / 5;

    /// The id of the job that the call spawns, which is the same for each repeat.
    pub fn spawned(&self) -> JobId {
        self.key.derive(self.caller.job.derive(Self::SPAWNED))
    }
}

/// The answer to a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolEnd {
    /// The result, JSON.
    Result(Arc<[u8]>),
    /// Why the tool was not called.
    Refused(String),
}

/// The answer to the parent of a spawned job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpawnEnd {
    /// It ended well: its output, JSON.
    Completed(Payload),
    /// It did not: its error, or that it is not finished in time.
    Failed(String),
    /// There is no such job: why.
    Refused(String),
}

/// A lease that a worker holds, as reported in its hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeldLease {
    pub job: JobId,
    /// The lease's token.
    pub token: FencingToken,
    /// Number of the attempt.
    pub attempt: Attempt,
}

/// What a worker says of one lease. Numbered by the session, kept until acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub job: JobId,
    /// The lease's token.
    pub token: FencingToken,
    /// What happened.
    pub kind: ReportKind,
}

/// What happened to an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportKind {
    /// It has all that it needs and is about to run; sent only where the start must be committed first.
    Started,
    /// It ended with a valid output.
    Completed {
        /// The output, JSON.
        output: Payload,
        /// What was measured.
        usage: Usage,
        /// The job's metadata with what the attempt added; none leaves it as it was.
        metadata: Option<Arc<[u8]>>,
    },
    /// It ended otherwise.
    Failed {
        /// Why.
        failure: Failure,
        /// The output, when only its validation failed.
        output: Option<Payload>,
        /// What was measured.
        usage: Usage,
        /// The job's metadata with what the attempt added; none leaves it as it was.
        metadata: Option<Arc<[u8]>>,
        /// True when it was stopped because of a cancel.
        cancelled: bool,
    },
    /// The node does not have this lease: it was granted and never arrived, or its process is gone.
    NotHeld,
}

/// The result of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportResult {
    /// It is committed.
    Applied,
    /// The lease is outdated; nothing changed.
    Fenced,
}

/// The answer to steps, or to a fold of steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepsResult {
    /// They are in the journal: their outcomes may be used.
    Applied,
    /// The lease is outdated: nothing changed, the attempt must stop.
    Fenced,
    /// The cluster has no room for them at the moment: the same frame may be accepted later.
    Busy,
    /// The cluster has no room for another journal: this is the first step of one.
    NoRoom,
    /// The journal contradicts them, and would do so again.
    Refused {
        /// The step that is refused.
        step: u64,
        /// Both sides, in words.
        why: String,
    },
    /// The budget has no room for the model call, whatever the calls under way cost. Amounts are in billionths of a dollar.
    OverBudget {
        /// The budget.
        budget: u64,
        /// What recorded calls of the whole tree have cost.
        spent: u64,
    },
}

/// What a stream event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StreamKind {
    /// A log line; the level says how grave.
    Log,
    /// A step forward, in words or as JSON.
    Progress,
}

/// One line of what an attempt says while it runs: numbered per attempt from 1, never part of the replicated state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEvent {
    /// From 1, gapless unless the spool overflowed; then the next number tells how many are missing.
    pub number: u64,
    /// The worker's wall clock.
    pub at: Timestamp,
    /// What it is.
    pub kind: StreamKind,
    /// `info`, `warning`, `error`; empty where it makes no sense.
    pub level: String,
    /// The line.
    pub text: String,
}

/// A piece of a model's answer as it forms. Never stored: current followers get it, and the step that follows is the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// The step of the attempt that makes the call.
    pub step: u32,
    /// How often the call was begun, from 1: a higher number starts the answer over.
    pub try_number: u32,
    /// Bytes of the answer before this piece.
    pub offset: u64,
    pub text: String,
}
