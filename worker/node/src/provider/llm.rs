//! Agents that are a model in a loop of tools. The loop itself is `atlas-turn`; this module gives it its settings, calls its
//! models, and records each step in the job's journal, so that a later attempt repeats no call.

mod again;
mod direct;
mod document_models;
pub(super) mod drive;
pub(super) mod fault;
pub(super) mod fixed;
mod gate;
mod health;
pub(super) mod loki_agent;
pub(super) mod model;
pub(super) mod outage;
mod probe;
mod search;
mod stored;
pub(super) mod team;
pub(super) mod tools;

use std::sync::Arc;

use atlas_turn::Permits;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use self::drive::Driver;
use self::fault::Fault;
pub(crate) use self::probe::preflight;
use super::{Execution, stopped};
use crate::attempt::Work;
use crate::provider::{Control, Shared};

/// An agent in its slot. It has no process, and its slot ends with the job.
pub(crate) struct LlmAgent {
    shared: Shared,
}

impl LlmAgent {
    pub(super) fn new(shared: &Shared) -> Self {
        Self { shared: shared.clone() }
    }

    pub(super) async fn execute(&mut self, work: &Arc<Work>, control: &mut Control<'_>) -> Execution {
        let (env, mailbox, limit) = (control.env, control.mailbox, work.assignment.execution_timeout);
        let journal = self.shared.journal(&work.assignment);
        let mut metadata = Map::new();
        let (shared, loki) = (&self.shared, None);
        let (team, permits) = (None, Permits::default());
        let (before, outage_limit) =
            (outage::Before::default(), outage::Limit::of(work, journal.parks(), env.clock.monotonic()));
        let measured = &mut metadata;
        let driver =
            Driver { work, shared, control, journal, metadata: measured, loki, team, permits, before, outage_limit };
        let end = tokio::select! {
            biased;
            () = stopped(mailbox) => None,
            end = driver.run() => Some(end),
            () = env.clock.sleep(limit.as_duration()) => return Execution::timed_out(limit).measured(metadata),
        };
        match end {
            None => Execution::stopped(),
            Some(Ok(output)) => answered(&output, metadata),
            Some(Err(fault)) => failed(&fault, metadata),
        }
    }
}

fn answered(output: &Value, metadata: Map<String, Value>) -> Execution {
    match RawValue::from_string(output.to_string()) {
        Ok(output) => Execution::Output { output, metadata, usable: false },
        Err(error) => failed(&Fault::internal(error.to_string()), metadata),
    }
}

fn failed(fault: &Fault, mut metadata: Map<String, Value>) -> Execution {
    if let Some(code) = fault.code() {
        metadata.insert("_error_code".to_owned(), code.into());
    }
    if let Some(seen) = fault.seen() {
        metadata.insert("_models".to_owned(), seen);
    }
    if let Some(kind) = fault.kind() {
        metadata.insert("_error_kind".to_owned(), kind.into());
    }
    Execution::Failed { failure: fault.failure(), metadata, usable: false }
}
