//! An attempt ended badly, or was stopped after a cancel.

use std::sync::Arc;

use atlas_types::{FailJob, JobStatus, Outcome, Reason, Rejection};

use super::check_report;
use crate::change::{Change, live_lease};

pub(super) fn apply(command: &FailJob, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.state.jobs.get(&command.job);
    let (job, _) = live_lease(job, |lease| lease.token == command.token && lease.node == command.node)?;
    check_report(command.output.as_ref(), command.stream.as_ref(), command.metadata.as_ref())?;

    let mut new = (**job).clone();
    if new.reason != Reason::Cancelling {
        new.output.clone_from(&command.output);
    }
    new.stream.clone_from(&command.stream);
    if let Some(metadata) = &command.metadata {
        new.metadata = Arc::clone(metadata);
    }
    Ok(change.end_by_report(new, &command.usage, JobStatus::Failed, Some(command.failure.clone())))
}
