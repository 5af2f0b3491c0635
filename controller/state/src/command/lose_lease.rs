//! One lease is lost although its node lives: the node says that it does not have it, or went silent about it.

use std::sync::Arc;

use atlas_types::{LoseLease, Outcome, Rejection};

use crate::change::{Change, live_lease};

pub(super) fn apply(command: &LoseLease, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.state.jobs.get(&command.job);
    let (job, _) = live_lease(job, |lease| lease.token == command.token)?;
    let job = Arc::clone(job);
    Ok(change.lose(&job))
}
