//! Routing: what an orchestrator decided about a job before its first attempt.

use std::sync::Arc;

use crate::{AgentName, AgentPin, EventSeq, Failure, Verdict};

/// Who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decider {
    /// The selected orchestrator.
    Orchestrator,
    /// The deadline: the orchestrator had not answered by then.
    Deadline,
    /// A failure of the orchestrator.
    Fault,
    /// The default orchestrator, which allows everything.
    Default,
}

impl Decider {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Orchestrator, Self::Deadline, Self::Fault, Self::Default];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Orchestrator => "orchestrator",
            Self::Deadline => "deadline",
            Self::Fault => "fault",
            Self::Default => "default",
        }
    }
}

/// What was decided about a job, without its details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RouteAction {
    /// Nothing yet.
    Undecided,
    /// It runs as it was asked for.
    Execute,
    /// It fails.
    Reject,
    /// It runs another agent.
    Redirect,
}

impl RouteAction {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Undecided, Self::Execute, Self::Reject, Self::Redirect];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Undecided => "undecided",
            Self::Execute => "execute",
            Self::Reject => "reject",
            Self::Redirect => "redirect",
        }
    }

    /// Whether it holds for the whole family of a job: its retries are not routed again.
    pub fn runs(self) -> bool {
        matches!(self, Self::Execute | Self::Redirect)
    }
}

/// How a job was routed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The revision of the selection under which it was decided; 0 while nothing is decided, and under the default orchestrator.
    pub generation: EventSeq,
    pub action: RouteAction,
    pub decider: Decider,
    /// The priority that the orchestrator gave it. The job gets it when it is granted, so that it moves nothing in the queue.
    pub priority: Option<i64>,
    /// The rule that decided, if rules did.
    pub rule: Option<Arc<str>>,
    /// The agent that was asked for, and its version; a redirect changes those of the job.
    pub asked: AgentName,
    /// None if the agent was unknown.
    pub asked_pin: Option<AgentPin>,
    /// What the door found wrong with what was asked for. The job fails with it unless it is rejected or redirected.
    pub refused: Option<Failure>,
}

/// A decision about a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It runs as it was asked for.
    Execute,
    /// It fails for this reason.
    Reject(Arc<str>),
    /// It runs another agent; the verdict says which version, and what is wrong with the job then.
    Redirect(AgentName, Verdict),
}
