//! JOB-1: a job has an end time if and only if it ended, and then is found by the event that ended it; it has a failure if
//! and only if it failed, and an output only if it ended by a report.

use std::collections::BTreeSet;

use atlas_types::{JobStatus, Timestamp};

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    let ended: BTreeSet<_> = state.ended.values().copied().collect();
    for job in state.jobs.iter() {
        let terminal = job.status.is_terminal();
        ensure(terminal == ended.contains(&job.id), || format!("{} and its ending disagree", job.id))?;
        ensure(terminal == (job.completed_at != Timestamp::NOT_YET), || {
            format!("{} is {} and ended at {}", job.id, job.status.as_str(), job.completed_at.0)
        })?;
        ensure((job.status == JobStatus::Failed) == job.failure.is_some(), || {
            format!("{} is {} with {:?}", job.id, job.status.as_str(), job.failure)
        })?;
        let by_report = matches!(job.status, JobStatus::Completed | JobStatus::Failed);
        ensure(by_report || job.output.is_none(), || format!("{} has an output too early", job.id))?;
        ensure(job.status != JobStatus::Completed || job.output.is_some(), || format!("{} has no output", job.id))?;
    }
    Ok(())
}
