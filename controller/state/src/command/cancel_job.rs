//! Cancels a job: a pending one ends at once, a running one when its worker has stopped it.

use atlas_types::{CancelJob, JobChange, JobStatus, Outcome, Reason, Rejection};

use crate::change::Change;

pub(super) fn apply(command: &CancelJob, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.own_job(command.job)?;
    let accepted = match job.status {
        JobStatus::Pending => {
            let job = (**job).clone();
            change.end(job, JobStatus::Cancelled, None);
            true
        }
        JobStatus::Running if command.running => {
            if job.reason != Reason::Cancelling {
                let mut job = (**job).clone();
                job.reason = Reason::Cancelling;
                change.put(job, JobChange::Cancelling, JobStatus::Running);
            }
            true
        }
        JobStatus::Running | JobStatus::Completed | JobStatus::Failed | JobStatus::Cancelled => false,
    };
    Ok(Outcome::Cancelled { accepted })
}
