//! Verdicts: what a door found about a job.

use crate::{AgentPin, ApprovalAsk, Failure};

/// What the door found when it resolved the agent and validated the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The job may run; `apply` checks that this version is still registered with this digest.
    Accepted(AgentPin),
    /// The job may run once people have approved it. It is recorded, and asks at once.
    Asked {
        pin: AgentPin,
        /// At least one, at most [`crate::JOB_APPROVALS_MAX`].
        asks: Vec<ApprovalAsk>,
    },
    /// The job is accepted and fails at once: pending → running → failed in one entry (compatibility §15.1).
    Refused {
        /// The version, if one was found.
        pin: Option<AgentPin>,
        /// Why.
        failure: Failure,
    },
}
