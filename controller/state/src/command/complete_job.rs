//! An attempt ended well. A result that comes after a cancel was accepted is dropped: the job ends cancelled.

use std::sync::Arc;

use atlas_types::{CompleteJob, JobStatus, Outcome, Reason, Rejection};

use super::check_report;
use crate::change::{Change, live_lease};

pub(super) fn apply(command: &CompleteJob, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.state.jobs.get(&command.job);
    let (job, _) = live_lease(job, |lease| lease.token == command.token && lease.node == command.node)?;
    check_report(Some(&command.output), command.stream.as_ref(), command.metadata.as_ref())?;

    let mut new = (**job).clone();
    if new.reason != Reason::Cancelling {
        new.output = Some(command.output.clone());
    }
    new.stream.clone_from(&command.stream);
    if let Some(metadata) = &command.metadata {
        new.metadata = Arc::clone(metadata);
    }
    Ok(change.end_by_report(new, &command.usage, JobStatus::Completed, None))
}
