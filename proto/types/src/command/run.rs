//! Commands of runs, and about the jobs that they carry.

use std::sync::Arc;

use crate::{Failure, JobId, ObjectName, Payload, RunFailure, RunId, RunStrategy, StepLeft, SubmitJob};

/// Gives a pending job to a run, which carries it: the job runs without a lease until the run ends it, somebody cancels it or its
/// time is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarryJob {
    pub job: JobId,
    pub run: RunId,
}

/// How a run ends the job that it carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CarriedEnd {
    /// With this valid output, JSON.
    Completed(Payload),
    /// Badly.
    Failed {
        /// Why.
        failure: Failure,
        /// The output, when only its validation failed.
        output: Option<Payload>,
    },
}

/// Ends a job, for the run that carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndCarried {
    pub job: JobId,
    pub run: RunId,
    pub end: CarriedEnd,
    /// The job's metadata with what the run added, a JSON object; none leaves it as it was.
    pub metadata: Option<Arc<[u8]>>,
}

/// The definition of a run's chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunDefinition {
    /// The object of this name, as it is when the run starts.
    Named(ObjectName),
    /// It came with the request.
    Given {
        /// The name of the chain.
        chain: Arc<str>,
        /// How many steps it has.
        steps: u32,
        /// The definition, JSON.
        document: Payload,
    },
}

/// Starts a run of a chain. The agents are looked up later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartRun {
    /// Drawn at the door.
    pub id: RunId,
    pub definition: RunDefinition,
    /// The input of the chain, JSON.
    pub input: Payload,
    /// The priority of its jobs.
    pub priority: i64,
    /// Metadata for its jobs, a JSON object.
    pub metadata: Arc<[u8]>,
}

/// What a run does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunNext {
    /// Submits the job of the next step.
    Step {
        /// The agent as the chain names it, without a version.
        agent: Arc<str>,
        /// How its input was made.
        strategy: RunStrategy,
        /// Its job. The priority and the metadata are those of this command.
        submit: Box<SubmitJob>,
    },
    /// It fails.
    Fail(RunFailure),
    /// It is completed: the chain has no steps.
    Complete,
    /// In a chain with branches: steps begin together, others do not run, or the run ends.
    Wave(Box<RunWave>),
}

/// What a run with branches does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunWave {
    /// Steps that begin.
    pub start: Vec<WaveStep>,
    /// Steps that do not run.
    pub left: Vec<StepLeft>,
    /// Whether there is more to decide at once.
    pub more: bool,
    /// How the run ends.
    pub end: Option<WaveEnd>,
}

/// A step that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaveStep {
    /// Which step of the chain it is.
    pub number: u32,
    /// The agent as the chain names it, without a version.
    pub agent: Arc<str>,
    /// How its input was made.
    pub strategy: RunStrategy,
    /// Its job.
    pub submit: Box<SubmitJob>,
}

/// How a run with branches ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaveEnd {
    /// All steps have ended.
    Complete,
    /// It fails; jobs that run are cancelled.
    Fail(RunFailure),
}

/// Continues a run. What it does next was computed for one version of the run; a run that has changed since refuses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdvanceRun {
    pub run: RunId,
    /// The version of the run that this continues.
    pub version: u64,
    /// The versions and schemas of the agents, JSON, with the first step.
    pub plan: Option<Payload>,
    pub next: RunNext,
}

/// Cancels a run and the job of its current step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelRun {
    pub run: RunId,
}
