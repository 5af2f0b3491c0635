//! Commands about orchestrators.

use std::sync::Arc;

use crate::{AgentName, AgentPin, Decider, Decision, EventSeq, JobId, Micros, Payload};

/// Records the decision about a job that waits for one, or puts a job whose decision is outdated back to wait for another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteJob {
    pub job: JobId,
    /// The revision of the selection under which it was decided; 0 is the default orchestrator. Another one is refused.
    pub generation: EventSeq,
    /// Who decided.
    pub decider: Decider,
    /// None voids an outdated decision.
    pub decision: Option<Decision>,
    /// The priority that the job gets.
    pub priority: Option<i64>,
    /// The rule that decided, if rules did.
    pub rule: Option<Arc<str>>,
}

/// Starts a job of the cluster itself, in which an orchestrator of the caller's namespace is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsultOrchestrator {
    /// The id of that job.
    pub id: JobId,
    /// The orchestrator.
    pub agent: AgentName,
    /// Its version; `apply` checks that it is registered with this digest.
    pub pin: AgentPin,
    /// The calls, JSON.
    pub input: Payload,
    /// How long it may take.
    pub timeout: Micros,
}
