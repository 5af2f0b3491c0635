//! Commands: what may be asked of the state. One struct a command; `atlas-state` has one file a command with its `apply`.
//!
//! A command carries results, never questions: versions are resolved, inputs validated and placements chosen before.

mod agent;
mod cluster;
mod job;
mod node;

pub use agent::{DeleteAgent, DeprecateAgent, RegisterAgent, RetireAgent};
pub use cluster::{ConfigureCluster, CreateJoinToken, JoinMember, PruneJobs, ReportDigest, RevokeJoinToken, SinkAck};
pub use job::{
    CancelJob, CompleteJob, FailJob, FailPending, ForsakeChild, GrantLease, LoseLease, Resolution, ResolveJob,
    RetryJob, Spawner, StartJob, SubmitJob, Usage, Verdict, WakeJob,
};
pub use node::{Cordon, DrainNode, LabelNode, LoseNode, RegisterNode, RemoveNode, WarmChanged};

use crate::{AgentName, Level, Origin};

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
    /// Forgets a retired agent version.
    DeleteAgent(DeleteAgent),
}

impl Command {
    /// The agent that it is about.
    fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::RegisterAgent(command) => Some(&command.name),
            Self::RetireAgent(command) => Some(&command.name),
            Self::DeprecateAgent(command) => Some(&command.name),
            Self::SubmitJob(command) => Some(&command.agent),
            _ => None,
        }
    }

    /// The feature level that knows the command: the head proposes it only once that is active (design §2).
    pub fn level(&self) -> Level {
        // An older program cannot read such a name.
        if self.agent().is_some_and(|name| !name.is_plain()) {
            return Level(5);
        }
        match self {
            // An older program would go on checking.
            Self::RegisterNode(command) if command.inventory.unchecked => Level(2),
            // It would not keep what these say beyond what it knows.
            Self::RegisterAgent(command) if !command.spec.requires.is_empty() => Level(5),
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
            Self::DeleteAgent(_) => Level(5),
        }
    }
}
