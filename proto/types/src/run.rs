//! Runs of chains, which are part of the replicated state (ADR 29).

use std::fmt;
use std::sync::Arc;

use crate::{
    Door, EventSeq, Failure, FailureKind, JobId, Namespace, Payload, Principal, RunId, Timestamp, TraceContext,
};

/// Most runs that have not ended.
pub const RUNS_ACTIVE_MAX: u64 = 10_000;

/// Most runs that are kept after their end. The run that ended first goes first (compatibility §12.4).
pub const RUNS_ENDED_KEPT: u64 = 1_000;

/// Most steps of a run.
pub const RUN_STEPS_MAX: u32 = 1_000;

/// What jobs put before the reasons for which they did not begin.
const POOL_ERROR: &str = "Pool error: ";

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunStatus {
    /// Its agents are not looked up yet.
    Pending,
    Running,
    /// Its last step completed.
    Completed,
    /// A step failed, or could not begin.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
}

impl RunStatus {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Running, Self::Completed, Self::Failed, Self::Cancelled];

    /// The word that clients see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing follows any more.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// How the output of one step became the input of the next (compatibility §11.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunStrategy {
    /// The input of the chain, for the first step.
    None,
    Direct,
    Mapped,
    Coerce,
    /// A model converted it.
    Bridge,
}

impl RunStrategy {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::None, Self::Direct, Self::Mapped, Self::Coerce, Self::Bridge];

    /// Its name in results.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Direct => "direct",
            Self::Mapped => "mapped",
            Self::Coerce => "coerce",
            Self::Bridge => "llm_bridge",
        }
    }

    /// The strategy of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.as_str() == name)
    }

    /// What it costs in the units of results; only a model costs something.
    pub fn cost(self) -> f64 {
        if self == Self::Bridge { 1.0 } else { 0.0 }
    }
}

/// A step that was started; one record for each try that the chain asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStep {
    /// Which step of the chain it is, from 0.
    pub number: u32,
    /// The agent as the chain names it, without a version.
    pub agent: Arc<str>,
    /// The first job of the step. Its retries belong to the step.
    pub job: JobId,
    /// How its input was made.
    pub strategy: RunStrategy,
    /// Set when it completed.
    pub output: Option<Payload>,
    /// Why it has no output. Only in a run with branches; elsewhere a failure ends the run, which keeps it.
    pub fault: Option<RunFault>,
}

impl RunStep {
    /// Whether its job has not ended.
    pub fn is_open(&self) -> bool {
        self.output.is_none() && self.fault.is_none()
    }
}

/// A step that does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepLeft {
    /// Which step of the chain it is.
    pub number: u32,
    /// Why it could not begin; none if it should not, by its condition or because the steps before have ended.
    pub error: Option<Arc<str>>,
}

/// What only runs have whose steps need not run one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Branches {
    /// Whether something has happened since it was last decided what the run does next.
    pub fresh: bool,
    /// Steps that do not run.
    pub left: Vec<StepLeft>,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunFault {
    /// It could not begin, or the next step could not; the whole text.
    Text(Arc<str>),
    /// The job of a step failed.
    Job(Failure),
    /// The job of a step was cancelled.
    Cancelled,
}

/// Where and why a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFailure {
    /// The number of the step; none if no step could begin.
    pub step: Option<u32>,
    pub fault: RunFault,
}

impl RunFault {
    /// What the step of `agent` shows (compatibility §12.3).
    pub fn step_error(&self, agent: &str) -> String {
        match self {
            Self::Text(text) => text.to_string(),
            Self::Cancelled => "Job was cancelled".to_owned(),
            Self::Job(Failure { kind: FailureKind::InputInvalid, .. }) => "Input validation failed".to_owned(),
            Self::Job(Failure { kind: FailureKind::OutputInvalid, .. }) => "Output validation failed".to_owned(),
            fault if fault.lacks_implementation() => format!("No agent implementation found for: {agent}"),
            // Chains of Atlas for Python use no pool.
            Self::Job(Failure { error, .. }) => error.strip_prefix(POOL_ERROR).unwrap_or(error).to_owned(),
        }
    }

    /// Whether the agent is gone, or is registered without a program.
    fn lacks_implementation(&self) -> bool {
        let Self::Job(Failure { kind, error }) = self else { return false };
        let why = error.strip_prefix(POOL_ERROR).unwrap_or(error);
        *kind == FailureKind::NoAgent || why.starts_with("Agent not found or no implementation")
    }
}

/// Whether a text is not the reason of an orchestrator: it begins with the code of an error, as those of policies do, or is that of a chain
/// which the step ran.
fn is_of_others(error: &str) -> bool {
    if ["Agent failed at step ", "Orchestrator rejected step "].iter().any(|chain| error.starts_with(chain)) {
        return true;
    }
    let code = error.split_once(": ").and_then(|(code, _)| code.strip_prefix('E'));
    code.is_some_and(|digits| digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_digit()))
}

/// What a chain does once, from its start to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Whose it is.
    pub namespace: Namespace,
    pub id: RunId,
    /// The name of the chain.
    pub chain: Arc<str>,
    /// The revision of the object that it was started from; none for a definition that came with the request.
    pub revision: Option<EventSeq>,
    /// The definition as it was at the start, JSON.
    pub definition: Payload,
    /// The input of the chain, JSON.
    pub input: Payload,
    pub status: RunStatus,
    /// One more for each change: a command that was computed elsewhere names the version that it continues.
    pub version: u64,
    /// How many steps the chain has.
    pub total_steps: u32,
    /// The versions and schemas of the agents, JSON; none until they are looked up.
    pub plan: Option<Payload>,
    /// The steps that were started. Without branches, all but the last have completed.
    pub steps: Vec<Arc<RunStep>>,
    /// Set by the first decision about a chain with branches.
    pub branches: Option<Branches>,
    /// Set when it failed.
    pub failure: Option<RunFailure>,
    /// The priority of its jobs.
    pub priority: i64,
    /// The metadata of its jobs besides those of the step, a JSON object.
    pub metadata: Arc<[u8]>,
    pub created_at: Timestamp,
    pub completed_at: Timestamp,
    /// The event that started it: newer runs have higher ones.
    pub started: EventSeq,
    /// The event that ended it.
    pub ended: Option<EventSeq>,
    /// Who asked.
    pub principal: Principal,
    pub door: Door,
    /// The caller's trace.
    pub trace: Option<TraceContext>,
    /// The job that it carries.
    pub job: Option<JobId>,
}

impl Run {
    /// The first job of its next step.
    pub fn next_job(&self) -> JobId {
        self.job_at(self.steps.len())
    }

    /// The first job of the step with this record.
    pub fn job_at(&self, record: usize) -> JobId {
        // Far from the numbers by which retries get theirs.
        JobId(self.id.0).derive(!0).derive(record as u64)
    }

    /// Whether it goes on with its next step, or with the look-up of its agents: nothing that runs has to end first.
    pub fn is_ready(&self) -> bool {
        match self.status {
            RunStatus::Pending => true,
            RunStatus::Running => match &self.branches {
                Some(branches) => branches.fresh,
                None => self.steps.last().is_none_or(|step| step.output.is_some()),
            },
            RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => false,
        }
    }

    /// The number of the last step that was started; -1 if none was.
    pub fn current_step(&self) -> i64 {
        match self.branches {
            Some(_) => self.steps.iter().map(|step| i64::from(step.number)).max().unwrap_or(-1),
            None => self.steps.len() as i64 - 1,
        }
    }

    /// The text of its failure (compatibility §12.3); empty if it did not fail.
    pub fn error(&self) -> String {
        let Some(RunFailure { step, fault }) = &self.failure else {
            let cancelled = self.status == RunStatus::Cancelled;
            return if cancelled { "Chain execution was cancelled".to_owned() } else { String::new() };
        };
        let number = step.unwrap_or_default();
        let agent = self.steps.iter().rfind(|step| step.number == number).map_or("", |step| &step.agent);
        match fault {
            RunFault::Text(text) => text.to_string(),
            fault if fault.lacks_implementation() => fault.step_error(agent),
            RunFault::Job(Failure { kind: FailureKind::Rejected, error }) if !is_of_others(error) => {
                format!("Orchestrator rejected step {number} ({agent}): {error}")
            }
            fault => format!("Agent failed at step {number} ({agent}): {}", fault.step_error(agent)),
        }
    }

    /// The number of the step that failed or was cancelled; -1 if there is none.
    pub fn failed_at(&self) -> i64 {
        match &self.failure {
            Some(failure) => failure.step.map_or(-1, i64::from),
            None if self.status == RunStatus::Cancelled => self.current_step(),
            None => -1,
        }
    }

    /// The output of a run that completed: that of the last step that has one.
    pub fn output(&self) -> Payload {
        let done = self.steps.iter().filter(|step| step.output.is_some()).max_by_key(|step| step.number);
        done.and_then(|step| step.output.clone()).unwrap_or_else(|| Payload::inline(b"{}"))
    }

    /// Its payloads.
    pub fn payloads(&self) -> impl Iterator<Item = &Payload> {
        let own = [Some(&self.definition), Some(&self.input), self.plan.as_ref()].into_iter().flatten();
        own.chain(self.steps.iter().filter_map(|step| step.output.as_ref()))
    }

    /// Bytes that it takes in the state.
    pub fn inline_bytes(&self) -> u64 {
        self.payloads().map(Payload::inline_bytes).sum::<u64>() + self.metadata.len() as u64
    }
}

/// The step for which a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepOf {
    pub run: RunId,
    /// The number of the step, from 0.
    pub index: u32,
}

/// What made the event of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunChange {
    /// It was started.
    Started,
    /// The job of a step was submitted.
    StepStarted,
    /// A step completed that is not the last.
    StepEnded,
    /// It ended; the status says how.
    Ended,
}

impl RunChange {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Started, Self::StepStarted, Self::StepEnded, Self::Ended];

    /// Its word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::StepStarted => "step_started",
            Self::StepEnded => "step_ended",
            Self::Ended => "ended",
        }
    }
}

impl fmt::Display for RunChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_the_texts_of_atlas_for_python() {
        let told = |kind, error: &str| RunFault::Job(Failure { kind, error: error.into() }).step_error("a");
        assert_eq!(told(FailureKind::InputInvalid, "Input validation: 'x' is required"), "Input validation failed");
        assert_eq!(told(FailureKind::OutputInvalid, "Output validation: …"), "Output validation failed");
        assert_eq!(told(FailureKind::Timeout, "Execution timed out after 0.3s"), "Execution timed out after 0.3s");
        assert_eq!(told(FailureKind::Startup, "Pool error: no model"), "no model");
        assert_eq!(told(FailureKind::Agent, "boom"), "boom");
        let missing = "No agent implementation found for: a";
        assert_eq!(told(FailureKind::NoAgent, "Pool error: Agent not found or no implementation: a"), missing);
        assert_eq!(told(FailureKind::Startup, "Pool error: Agent not found or no implementation: a"), missing);
    }
}
