//! Puts a job whose back-off has passed in the queue.

use atlas_types::{JobChange, JobStatus, Outcome, Reason, Rejection, WakeJob};

use crate::change::Change;

pub(super) fn apply(command: &WakeJob, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.job(command.job)?;
    let Reason::Backoff { until } = job.reason else {
        return Err(Rejection::WrongStatus { status: job.status });
    };
    if job.status != JobStatus::Pending {
        return Err(Rejection::WrongStatus { status: job.status });
    }
    if until > change.clock {
        return Err(Rejection::NotDue);
    }
    let mut job = (**job).clone();
    job.reason = Reason::Queued;
    job.queued_at = change.clock;
    change.put(job, JobChange::Woken, JobStatus::Pending);
    Ok(Outcome::Done)
}
