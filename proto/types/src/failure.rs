//! Failures of jobs.

use std::sync::Arc;

/// What ended a job that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// The agent raised an error or exited with one.
    Agent,
    /// No such agent, or it has no implementation.
    NoAgent,
    /// The input does not fit the contract.
    InputInvalid,
    /// The output does not fit the contract.
    OutputInvalid,
    /// Start-up failed or took too long.
    Startup,
    /// The attempt took too long.
    Timeout,
    /// It waited longer than its queue timeout.
    QueueTimeout,
    /// No registered node could ever run it.
    Unsatisfiable,
    /// The orchestrator, a policy, or a person whom a policy asks rejected it.
    Rejected,
    /// An agent that it requires is missing.
    Dependency,
    /// Its last allowed lease was lost.
    LeaseLost,
    /// A fault of ours, or of the node.
    Internal,
}

impl FailureKind {
    /// The word that clients see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::NoAgent => "no_agent",
            Self::InputInvalid => "input_invalid",
            Self::OutputInvalid => "output_invalid",
            Self::Startup => "startup",
            Self::Timeout => "timeout",
            Self::QueueTimeout => "queue_timeout",
            Self::Unsatisfiable => "unsatisfiable",
            Self::Rejected => "rejected",
            Self::Dependency => "dependency",
            Self::LeaseLost => "lease_lost",
            Self::Internal => "internal",
        }
    }
}

/// Kind and text of a failure; the text is what clients see as `error`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// For reasons, metrics and retries.
    pub kind: FailureKind,
    /// For people.
    pub error: Arc<str>,
}
