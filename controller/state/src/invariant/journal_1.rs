//! JOURNAL-1: a journal beside the jobs is that of a job that has not ended and has a version; an ended job has its own.

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    for (id, journal) in &state.journals {
        let job = state.jobs.get(*id).filter(|job| !job.status.is_terminal());
        ensure(job.is_some(), || format!("{id} has a journal and has ended, or is gone"))?;
        ensure(journal.next() > 0, || format!("the journal of {id} is empty"))?;
    }
    for job in state.jobs.iter() {
        ensure(job.journal.is_none() || job.status.is_terminal(), || {
            format!("{} has not ended and has its journal inside", job.id)
        })?;
    }
    Ok(())
}
