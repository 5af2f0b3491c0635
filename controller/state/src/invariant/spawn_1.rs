//! SPAWN-1: an awaited child has a parent one level above it that runs, under a lease or by a run, or that waits with recorded
//! steps.

use atlas_types::{Job, JobStatus};

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    for job in state.jobs.iter() {
        let Some(spawned) = job.spawned else { continue };
        ensure(spawned.depth > 0, || format!("{} is the child of nobody", job.id))?;
        let parent = state.jobs.get(spawned.by);
        ensure(parent.is_none_or(|parent| parent.depth() + 1 == spawned.depth), || {
            format!("{} has depth {} below {}", job.id, spawned.depth, spawned.by)
        })?;
        let waits = parent.is_some_and(|parent| may_wait(state, parent));
        ensure(job.awaited_by().is_none() || waits, || {
            format!("{} is awaited by {}, which neither runs nor has recorded steps", job.id, spawned.by)
        })?;
    }
    Ok(())
}

/// Whether a job may wait for children: one that lost its lease and has no recorded steps has left them.
fn may_wait(state: &State, job: &Job) -> bool {
    match job.status {
        JobStatus::Running => true,
        JobStatus::Pending => state.journals.contains_key(&job.id),
        JobStatus::Completed | JobStatus::Failed | JobStatus::Cancelled => false,
    }
}
