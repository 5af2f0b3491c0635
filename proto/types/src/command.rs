//! Commands: changes of the state. One struct per command; `atlas-state` has one file per command with its `apply`.
//!
//! A command carries results, never questions: versions are resolved, inputs validated and placements chosen before.

mod agent;
mod cluster;
mod job;
mod journal;
mod node;
mod object;
mod park;
mod question;
mod route;
mod run;

pub use agent::{DeleteAgent, DeprecateAgent, RegisterAgent, ResumeAgent, RetireAgent};
pub use cluster::{ConfigureCluster, CreateJoinToken, JoinMember, PruneJobs, ReportDigest, RevokeJoinToken, SinkAck};
pub use job::{
    CancelJob, CompleteJob, ErasePayloads, FailJob, FailPending, ForkJob, ForsakeChild, GrantLease, LoseLease,
    Resolution, ResolveJob, RetryJob, StartJob, StoreLog, WakeJob,
};
pub use journal::{FoldSteps, RecordSteps, ReserveBudget};
pub use node::{Cordon, DrainNode, LabelNode, LoseNode, NoteRival, RegisterNode, RemoveNode, ResumeNode, WarmChanged};
pub use object::{DeleteObject, FireTrigger, FiredBy, Observation, ObserveObjects, PutObject, TriggerStart};
pub use park::{DeliverMessage, ParkJob};
pub use question::{AnswerQuestion, AskQuestion, ExpireQuestion};
pub use route::{ConsultOrchestrator, RouteJob};
pub use run::{
    AdvanceRun, CancelRun, CarriedEnd, CarryJob, EndCarried, RunDefinition, RunNext, RunWave, StartRun, WaveEnd,
    WaveStep,
};

use crate::{AgentName, Decision, Level, Origin, Place, StepKind, SubmitJob, Verdict, level};

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
    CancelJob(CancelJob),
    /// One lease is lost, its node lives.
    LoseLease(LoseLease),
    /// A backoff has passed.
    WakeJob(WakeJob),
    /// A person asks for an ended job to be run again, as a new job.
    RetryJob(RetryJob),
    /// A member's history has everything up to an event.
    SinkAck(SinkAck),
    /// Drops ended jobs that history has.
    PruneJobs(PruneJobs),
    /// Changes limits.
    ConfigureCluster(ConfigureCluster),
    /// Resolves a job in doubt.
    ResolveJob(ResolveJob),
    /// A member tells the digest of its state.
    ReportDigest(ReportDigest),
    /// Makes a join token known.
    CreateJoinToken(CreateJoinToken),
    RevokeJoinToken(RevokeJoinToken),
    /// A controller joins with a token.
    JoinMember(JoinMember),
    /// Marks an agent version as deprecated, or removes the mark.
    DeprecateAgent(DeprecateAgent),
    /// A parent waits no longer for a child, which is cancelled.
    ForsakeChild(ForsakeChild),
    /// Gives a node labels, or takes them away.
    LabelNode(LabelNode),
    /// Forgets a retired agent version.
    DeleteAgent(DeleteAgent),
    ErasePayloads(ErasePayloads),
    /// Appends steps to a job's journal.
    RecordSteps(RecordSteps),
    /// Replaces the oldest steps of a journal by an artifact.
    FoldSteps(FoldSteps),
    /// Stores the log of a running attempt.
    StoreLog(StoreLog),
    /// Ends the lease of a job that waits.
    ParkJob(ParkJob),
    /// Puts a message into a job's inbox.
    DeliverMessage(DeliverMessage),
    /// Makes an object or replaces its spec.
    PutObject(PutObject),
    DeleteObject(DeleteObject),
    /// Notes what a leader task says about objects.
    ObserveObjects(ObserveObjects),
    /// Gives a pending job to a run, which carries it.
    CarryJob(CarryJob),
    /// A run ends the job that it carries.
    EndCarried(EndCarried),
    /// Starts a run of a chain.
    StartRun(StartRun),
    /// A run goes on with its next step, or ends.
    AdvanceRun(AdvanceRun),
    CancelRun(CancelRun),
    /// A trigger fires.
    FireTrigger(FireTrigger),
    /// A person begins a new job with recorded steps of another one.
    ForkJob(ForkJob),
    /// A job asks people a question.
    AskQuestion(AskQuestion),
    /// Someone answers a question.
    AnswerQuestion(AnswerQuestion),
    /// The time of a question has passed.
    ExpireQuestion(ExpireQuestion),
    /// Records what an orchestrator decided about a job.
    RouteJob(RouteJob),
    /// Calls an orchestrator, in a job of the cluster itself.
    ConsultOrchestrator(ConsultOrchestrator),
    /// Closes the circuit of an agent version.
    ResumeAgent(ResumeAgent),
    /// Closes the circuit of a node.
    ResumeNode(ResumeNode),
    /// Notes a worker that was refused because another one has its name.
    NoteRival(NoteRival),
    /// Reserves what a model call may cost in the budget of the job or of a job above it.
    ReserveBudget(ReserveBudget),
}

impl Command {
    /// The agent that it is about.
    fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::RegisterAgent(command) => Some(&command.name),
            Self::RetireAgent(command) => Some(&command.name),
            Self::DeprecateAgent(command) => Some(&command.name),
            Self::ResumeAgent(command) => Some(&command.name),
            Self::SubmitJob(command) => Some(&command.agent),
            Self::ConsultOrchestrator(command) => Some(&command.agent),
            _ => None,
        }
    }

    /// Whether it tells of places that an older program would not count.
    fn has_llm_places(&self) -> bool {
        match self {
            Self::RegisterNode(command) => command.inventory.llm_places > 0,
            Self::RegisterAgent(command) => command.spec.demand.place == Place::Llm,
            Self::GrantLease(command) => command.allocation.place == Place::Llm,
            _ => false,
        }
    }

    /// The feature level that knows the command: the head proposes it only once that is active.
    pub fn level(&self) -> Level {
        if self.has_llm_places() {
            return level::LLM_PLACES;
        }
        // An older program cannot read such a name.
        if self.agent().is_some_and(|name| !name.is_plain()) {
            return level::AGENT_NAMES;
        }
        match self {
            // An older program would go on checking.
            Self::RegisterNode(command) if command.inventory.unchecked => level::UNCHECKED_NODES,
            // It would not keep what these say beyond what it knows.
            Self::RegisterAgent(command) if command.immutable => level::REVISIONS,
            Self::RegisterAgent(command) if command.spec.failures_max.is_some() => level::CIRCUITS,
            Self::RegisterAgent(command) if command.spec.rate.is_some() || command.spec.per_key.is_some() => {
                level::RATES
            }
            Self::RegisterAgent(command) if command.spec.demand.nodejs || command.spec.durable => level::DURABLE,
            Self::RegisterAgent(command) if command.spec.demand.python => level::PYTHON,
            Self::RegisterAgent(command) if command.spec.carried => level::CARRY,
            Self::RegisterAgent(command) if !command.spec.other_models.is_empty() => level::OTHER_MODELS,
            Self::RegisterAgent(command) if !command.spec.secrets.is_empty() || command.spec.model.is_some() => {
                level::ATTACHMENTS
            }
            Self::RegisterAgent(command) if !command.spec.servers.is_empty() => level::MCP_SERVERS,
            Self::RouteJob(RouteJob { decision: Some(Decision::Redirect(_, Verdict::Asked { .. })), .. }) => {
                level::APPROVALS
            }
            Self::RegisterAgent(command) if !command.spec.requires.is_empty() => level::REQUIRED_AGENTS,
            Self::RegisterAgent(command) if command.spec.spawns => level::SPAWN,
            Self::ConfigureCluster(command) => command.config.level(),
            Self::CreateJoinToken(command) if command.salt.is_some() => level::REPEATED_TOKENS,
            Self::DrainNode(command) if command.deadline.is_some() => level::DRAIN_DEADLINE,
            Self::RetryJob(command) if command.questions.is_some() => level::DURABLE,
            Self::RetryJob(command) if command.resume => level::JOURNAL,
            Self::RegisterAgent(_)
            | Self::RetireAgent(_)
            | Self::RegisterNode(_)
            | Self::DrainNode(_)
            | Self::Cordon(_)
            | Self::RemoveNode(_)
            | Self::LoseNode(_)
            | Self::WarmChanged(_)
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
            | Self::PruneJobs(_) => level::FIRST,
            Self::SubmitJob(command) => command.level(),
            Self::ResolveJob(_) => level::DOUBT,
            Self::ReportDigest(_) => level::DIGESTS,
            Self::CreateJoinToken(_) | Self::RevokeJoinToken(_) | Self::JoinMember(_) => level::MEMBERSHIP,
            Self::DeprecateAgent(_) => level::DEPRECATION,
            Self::ForsakeChild(_) => level::SPAWN,
            Self::LabelNode(_) => level::NODE_LABELS,
            Self::DeleteAgent(_) => level::AGENT_DELETION,
            // An older program cannot read such a step, and would not keep the channel.
            Self::RecordSteps(command) if command.steps.iter().any(|step| step.kind == StepKind::Code) => {
                level::DURABLE
            }
            Self::DeliverMessage(command) if command.channel.is_some() => level::DURABLE,
            Self::RecordSteps(_) | Self::FoldSteps(_) => level::JOURNAL,
            Self::StoreLog(_) => level::STORED_LOGS,
            Self::ParkJob(_) | Self::DeliverMessage(_) => level::PARK,
            Self::CarryJob(_) | Self::EndCarried(_) => level::CARRY,
            Self::AdvanceRun(AdvanceRun { next: RunNext::Wave(_), .. }) => level::BRANCHES,
            Self::StartRun(_) | Self::AdvanceRun(_) | Self::CancelRun(_) => level::RUNS,
            Self::AskQuestion(_) | Self::AnswerQuestion(_) | Self::ExpireQuestion(_) => level::QUESTIONS,
            Self::RouteJob(_) | Self::ConsultOrchestrator(_) => level::ORCHESTRATORS,
            Self::PutObject(_) | Self::DeleteObject(_) | Self::ObserveObjects(_) => level::OBJECTS,
            Self::FireTrigger(_) => level::TRIGGERS,
            Self::ForkJob(command) if command.added.is_some() => level::FORK_CHANGES,
            Self::ForkJob(_) => level::FORKS,
            Self::ErasePayloads(_) => level::ERASURE,
            Self::ResumeAgent(_) | Self::ResumeNode(_) => level::CIRCUITS,
            Self::NoteRival(_) => level::RIVALS,
            Self::ReserveBudget(_) => level::ENVELOPES,
        }
    }
}
