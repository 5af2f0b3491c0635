//! Commits that an attempt starts. A worker waits for it before it runs a job that must not run twice.

use std::sync::Arc;

use atlas_types::{JobChange, JobStatus, Lease, Outcome, Reason, Rejection, StartJob};

use crate::change::{Change, live_lease};

pub(super) fn apply(command: &StartJob, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.state.jobs.get(&command.job);
    let (job, lease) = live_lease(job, |lease| lease.token == command.token && lease.node == command.node)?;
    if lease.started {
        return Ok(Outcome::Done);
    }

    let mut new = (**job).clone();
    // Cancelled before it started: nothing has run yet, so nothing has to be stopped.
    if job.reason == Reason::Cancelling {
        return Ok(change.end(new, JobStatus::Cancelled, None));
    }
    new.lease = Some(Arc::new(Lease { started: true, ..(**lease).clone() }));
    change.put(new, JobChange::Started, JobStatus::Running);
    Ok(Outcome::Done)
}
