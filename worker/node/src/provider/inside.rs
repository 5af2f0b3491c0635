//! Agents inside this process: a function instead of a program. It has the journal of its job, but no process.

use std::sync::Arc;

use atlas_types::{Failure, FailureKind};
use serde_json::Map;
use serde_json::value::RawValue;

use super::{Execution, stopped};
use crate::attempt::Work;
use crate::inside::{Inside, InsideJob};
use crate::provider::{Control, Shared};
use crate::texts::bounded;

/// The command of agents that the function serves, if the program that embeds the worker provides one.
pub(super) const INSIDE: &str = "@inside";

/// The function in a slot.
pub(crate) struct InsideAgent {
    function: Inside,
    shared: Shared,
}

impl InsideAgent {
    /// None if no function serves this agent inside the process.
    pub(super) fn of(work: &Work, shared: &Shared) -> Option<Self> {
        let function = shared.settings.inside.clone()?;
        let is_inside = work.agent.contract.provider.command == [INSIDE];
        is_inside.then(|| Self { function, shared: shared.clone() })
    }

    pub(super) async fn execute(&mut self, work: &Work, control: &Control<'_>) -> Execution {
        let assignment = &work.assignment;
        let limit = assignment.execution_timeout;
        let journal = self.shared.journal(assignment);
        let (job, attempt, input) = (assignment.job, assignment.attempt, Arc::clone(&work.input));
        let attachments = assignment.attachments.clone();
        let ending = self.function.begin(InsideJob { job, attempt, input, journal, attachments });
        let end = tokio::select! {
            biased;
            () = stopped(control.mailbox) => return Execution::stopped(),
            end = ending => end,
            () = control.env.clock.sleep(limit.as_duration()) => return Execution::timed_out(limit),
        };
        let failure = match end.map(RawValue::from_string) {
            Ok(Ok(output)) => return Execution::Output { output, metadata: Map::new(), usable: false },
            Ok(Err(error)) => Failure { kind: FailureKind::OutputInvalid, error: bounded(error.to_string()).into() },
            Err(failure) => failure,
        };
        Execution::Failed { failure, metadata: Map::new(), usable: false }
    }
}
