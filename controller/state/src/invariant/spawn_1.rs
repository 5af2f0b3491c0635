//! SPAWN-1: an awaited child has a running parent one level above it, and no job is deeper than the limit.

use atlas_types::JobStatus;

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
        let runs = parent.is_some_and(|parent| parent.status == JobStatus::Running);
        ensure(job.awaited_by().is_none() || runs, || {
            format!("{} is awaited by {}, which does not run", job.id, spawned.by)
        })?;
    }
    Ok(())
}
