//! ROUTE-1: a job that waits for a decision has none yet, and one that holds a lease was not rejected and is not undecided.

use atlas_types::{JobStatus, Reason, RouteAction};

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    for job in state.jobs.iter() {
        let action = job.route.as_ref().map(|route| route.action);
        if job.status == JobStatus::Pending && matches!(job.reason, Reason::Routing { .. }) {
            ensure(action == Some(RouteAction::Undecided), || {
                format!("{} waits for a decision and has {action:?}", job.id)
            })?;
            ensure(!job.is_system(), || format!("{} is a job of the cluster and waits for a decision", job.id))?;
        }
        if job.lease.is_some() {
            ensure(action.is_none_or(RouteAction::runs), || format!("{} runs after {action:?}", job.id))?;
        }
    }
    Ok(())
}
