//! Drops ended jobs that the histories of a majority have.

use std::collections::BTreeSet;

use atlas_types::{Outcome, PruneJobs, Rejection};

use crate::change::Change;

pub(super) fn apply(command: &PruneJobs, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let state = &mut *change.state;
    let voters: BTreeSet<_> = command.voters.iter().collect();
    let confirmed = voters.iter().filter(|voter| state.sink(***voter) >= command.event_seq).count();
    if 2 * confirmed <= voters.len() {
        return Err(Rejection::NotConfirmed);
    }

    let mut jobs = 0;
    while jobs < u64::from(command.limit)
        && let Some((event, id)) = state.ended.get_min().copied()
        && event <= command.event_seq
    {
        state.ended.remove(&event);
        let old = state.jobs.remove(&id);
        state.index.job(old.as_deref(), None);
        jobs += 1;
    }
    Ok(Outcome::Pruned { jobs })
}
