//! BUDGET-1: an envelope is that of a job with a budget that has not ended, and what is reserved in it belongs to jobs below it that have not
//! ended either.

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    for (id, envelope) in &state.envelopes {
        let job = state.jobs.get(*id).filter(|job| !job.status.is_terminal() && job.budget_nanodollars.is_some());
        ensure(job.is_some(), || format!("{id} has an envelope and has ended, has no budget, or is gone"))?;
        for (holder, _) in envelope.reserved.keys() {
            let live = state.jobs.get(*holder).is_some_and(|job| !job.status.is_terminal());
            let pays = state.payer(*holder).is_some_and(|payer| payer.id == *id);
            ensure(live && pays, || format!("{holder} has reserved in the budget of {id}, which does not pay for it"))?;
        }
    }
    Ok(())
}
