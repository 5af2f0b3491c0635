//! JOB-2: retries form families. A retry names the first job, counts within its rule, and only a failed job has a successor.

use atlas_types::{JobStatus, RouteAction};

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    for job in state.jobs.iter() {
        let id = job.id;
        let family = job.original.unwrap_or(job.id);
        ensure(job.original.is_none_or(|original| original != job.id), || format!("{id} is its own retry"))?;
        ensure(job.retry_count == 0 || job.original.is_some(), || format!("{id} is a retry of nothing"))?;
        // A redirected job counts on under the rule of its new agent, which may allow fewer retries than there were.
        let redirected = job.route.as_ref().is_some_and(|route| route.action == RouteAction::Redirect);
        let allowed = job.spec.as_ref().filter(|_| !redirected).map(|spec| spec.retry.max_retries);
        ensure(allowed.is_none_or(|allowed| job.retry_count <= allowed), || {
            format!("{id} is retry {} of {}", job.retry_count, allowed.unwrap_or_default())
        })?;
        let Some(successor) = job.successor else { continue };
        ensure(job.status == JobStatus::Failed, || format!("{id} did not fail and has a successor"))?;
        let Some(next) = state.jobs.get(successor) else { continue };
        ensure(next.original == Some(family) && next.retry_count == job.retry_count + 1, || {
            format!("{successor} does not follow {id}")
        })?;
    }
    Ok(())
}
