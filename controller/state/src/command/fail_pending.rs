//! Fails a job that waits: no node could ever run it, or it waited too long.

use atlas_types::{FailPending, FailureKind, JobStatus, Outcome, Rejection};

use crate::change::Change;
use crate::index::{TimerKind, timer_of};

pub(super) fn apply(command: &FailPending, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.job(command.job)?;
    if job.status != JobStatus::Pending {
        return Err(Rejection::WrongStatus { status: job.status });
    }
    if command.failure.kind == FailureKind::QueueTimeout {
        let timer = timer_of(job).filter(|timer| timer.kind == TimerKind::QueueTimeout);
        if timer.is_none_or(|timer| timer.due > change.clock) {
            return Err(Rejection::NotDue);
        }
    }
    let job = (**job).clone();
    Ok(change.fail_without_run(job, command.failure.clone()))
}
