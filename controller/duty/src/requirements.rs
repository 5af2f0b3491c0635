//! Fails retries whose agent requires agents that are gone. First jobs are checked at the door, which retries do not pass.

use atlas_state::State;
use atlas_types::{Command, FailPending, Failure, FailureKind, Job, RequiredAgent};

/// The failure of a retry that lacks agents; none for any other job.
pub(crate) fn failed(state: &State, job: &Job) -> Option<Command> {
    job.original?;
    let requires = &job.spec.as_ref()?.requires;
    let missing = state.missing_agents(&job.namespace, requires);
    if missing.is_empty() {
        return None;
    }
    let error = RequiredAgent::told_missing(&missing).into();
    let failure = Failure { kind: FailureKind::Dependency, error };
    Some(Command::FailPending(FailPending { job: job.id, failure }))
}
