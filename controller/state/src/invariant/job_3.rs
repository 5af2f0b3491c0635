//! JOB-3: status and reason agree, no job has had more attempts than it may, those that parked left out, unless a person resolved it so, and only
//! the contract's `effects` leave a job in doubt.

use atlas_types::{Effects, JobStatus, Reason};

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    for job in state.jobs.iter() {
        let agree = match job.status {
            JobStatus::Pending => {
                matches!(
                    job.reason,
                    Reason::Queued
                        | Reason::Backoff { .. }
                        | Reason::Delayed { .. }
                        | Reason::Routing { .. }
                        | Reason::Approval
                        | Reason::Lost
                        | Reason::InDoubt
                        | Reason::Parked
                )
            }
            JobStatus::Running => matches!(job.reason, Reason::Running | Reason::Cancelling),
            JobStatus::Completed | JobStatus::Failed | JobStatus::Cancelled => true,
        };
        ensure(agree, || format!("{} is {} because of {:?}", job.id, job.status.as_str(), job.reason))?;
        let Some(spec) = &job.spec else {
            let undecided = matches!(job.reason, Reason::Routing { .. });
            ensure(job.status.is_terminal() || undecided, || format!("{} waits without an agent", job.id))?;
            continue;
        };
        let allowed = spec.max_attempts.max(1);
        let unasked = matches!(spec.effects, Effects::Pure | Effects::Idempotent);
        ensure(job.attempts_counted() <= allowed || !unasked, || {
            format!("{} has had {} of {allowed} attempts", job.id, job.attempt)
        })?;
        let doubt = job.status == JobStatus::Pending && job.reason == Reason::InDoubt;
        ensure(!(doubt && unasked), || format!("{} is in doubt and may run again", job.id))?;
    }
    Ok(())
}
