//! Waiting jobs that cannot be granted yet, counted by reason.

use atlas_types::{Job, JobStatus, Reason};

/// How many jobs wait for something else than capacity. Jobs of the cluster itself are left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeldBack {
    /// For the time of their retry.
    pub backoff: u64,
    /// For the time for which they were submitted.
    pub delayed: u64,
    /// For what they parked for.
    pub parked: u64,
    /// For the decision of an orchestrator.
    pub routing: u64,
    /// For the approvals that policies demand.
    pub approval: u64,
    /// For a person, because their lease was lost.
    pub in_doubt: u64,
    /// For a run to carry them.
    pub carried: u64,
}

impl HeldBack {
    pub(crate) fn change(&mut self, old: Option<&Job>, new: Option<&Job>) {
        if let Some(count) = old.and_then(|job| self.of(job)) {
            *count -= 1;
        }
        if let Some(count) = new.and_then(|job| self.of(job)) {
            *count += 1;
        }
    }

    fn of(&mut self, job: &Job) -> Option<&mut u64> {
        if job.status != JobStatus::Pending || job.is_system() {
            return None;
        }
        match job.reason {
            Reason::Backoff { .. } => Some(&mut self.backoff),
            Reason::Delayed { .. } => Some(&mut self.delayed),
            Reason::Parked => Some(&mut self.parked),
            Reason::Routing { .. } => Some(&mut self.routing),
            Reason::Approval => Some(&mut self.approval),
            Reason::InDoubt => Some(&mut self.in_doubt),
            Reason::Queued | Reason::Lost if job.is_for_a_run() => Some(&mut self.carried),
            Reason::Queued | Reason::Lost | Reason::Running | Reason::Cancelling => None,
        }
    }
}
