//! Agents inside this process: a function instead of a program. It has the journal of its job, but no process.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use atlas_types::{Attachments, Attempt, Failure, FailureKind, JobId};
use serde_json::Map;
use serde_json::value::RawValue;

use super::{Execution, bounded, stopped};
use crate::journal::Journal;
use crate::slot::{Control, Shared, Work};

/// The command of agents that the function serves, if the program that embeds the worker provides one.
pub(super) const INSIDE: &str = "@inside";

/// A job for the function.
pub struct InsideJob {
    pub job: JobId,
    /// Number of the attempt, from 1.
    pub attempt: Attempt,
    /// The input as JSON text.
    pub input: Arc<[u8]>,
    /// The journal that the attempt continues.
    pub journal: Journal,
    /// Secrets, a bearer and models for this attempt alone.
    pub attachments: Attachments,
}

type Ending = Pin<Box<dyn Future<Output = Result<String, Failure>> + Send>>;

/// The function. It returns the job's output as JSON text.
#[derive(Clone)]
pub struct Inside(Arc<dyn Fn(InsideJob) -> Ending + Send + Sync>);

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inside")
    }
}

impl Inside {
    /// The function as an agent. Its future is dropped when the attempt is stopped or takes too long.
    pub fn new<F>(run: impl Fn(InsideJob) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String, Failure>> + Send + 'static,
    {
        Self(Arc::new(move |job| Box::pin(run(job))))
    }
}

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
        let journal = Journal::new(&self.shared, assignment);
        let (job, attempt, input) = (assignment.job, assignment.attempt, Arc::clone(&work.input));
        let attachments = assignment.attachments.clone();
        let ending = (self.function.0)(InsideJob { job, attempt, input, journal, attachments });
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
