//! APPROVAL-1: a job waits for approvals as long as it lacks one, each it lacks has an open question, and nothing runs without them.

use atlas_types::{EARLIER_APPROVALS_MAX, JOB_APPROVALS_MAX, JobStatus, Reason};

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    for job in state.jobs.iter().filter(|job| !job.status.is_terminal()) {
        let waits = job.status == JobStatus::Pending && job.reason == Reason::Approval;
        ensure(waits != job.is_approved(), || {
            format!("{} is {} because of {:?} with {:?}", job.id, job.status.as_str(), job.reason, job.approvals)
        })?;
        ensure(!waits || job.attempt.0 == 0, || format!("{} has run and waits for an approval", job.id))?;
        let Some(approvals) = &job.approvals else { continue };
        let count = approvals.all.len();
        let lacking = approvals.all.iter().filter(|approval| approval.by.is_none()).count();
        let most = EARLIER_APPROVALS_MAX + JOB_APPROVALS_MAX;
        ensure((1..=most).contains(&count) && lacking <= JOB_APPROVALS_MAX, || {
            format!("{} has {count} approvals and lacks {lacking}", job.id)
        })?;
        for approval in approvals.all.iter().filter(|approval| approval.by.is_none()) {
            let question = state.questions.get(&approval.question);
            let asks = question.is_some_and(|question| {
                question.is_open() && question.job == job.id && question.rule.is_some() && question.due.is_some()
            });
            ensure(asks, || format!("{} waits for {}, which does not ask for it", job.id, approval.question))?;
        }
    }
    Ok(())
}
