//! A person asks for an ended job to be run again, as a new job of the same family. The ended job stays as it is.

use atlas_types::{Job, Outcome, Rejection, RetryJob};

use super::submit_job::check_admission;
use crate::change::{Change, again};

pub(super) fn apply(command: &RetryJob, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.own_job(command.job)?;
    if !job.status.is_terminal() {
        return Err(Rejection::WrongStatus { status: job.status });
    }
    if job.spec.is_none() {
        return Err(Rejection::UnknownAgent);
    }
    check_admission(change, command.id, job.input.inline_bytes() + job.metadata.len() as u64)?;

    let origin = change.origin;
    let new = Job {
        principal: origin.principal.clone(),
        door: origin.door,
        request_id: origin.request_id.clone(),
        trace: origin.trace,
        ..again(job, command.id)
    };
    change.submit(new);
    Ok(Outcome::Submitted { job: command.id, repeated: false })
}
