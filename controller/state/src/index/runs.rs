//! Jobs of runs: those that wait for a run, and the job that each run carries.

use atlas_types::{Job, JobId, JobStatus, Reason, RunId, Turn};

use crate::map::Map;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    waiting: Map<Turn, JobId>,
    carried: Map<RunId, JobId>,
}

impl Runs {
    pub(crate) fn change(&mut self, old: Option<&Job>, new: Option<&Job>) {
        if let Some(job) = old.filter(|job| waits(job)) {
            self.waiting.remove(&Turn::of(job, None));
        }
        if let Some(job) = new.filter(|job| waits(job)) {
            self.waiting.insert(Turn::of(job, None), job.id);
        }
        if let Some(carried) = old.and_then(Job::carrier) {
            self.carried.remove(&carried.run);
        }
        if let (Some(carried), Some(job)) = (new.and_then(Job::carrier), new) {
            self.carried.insert(carried.run, job.id);
        }
    }

    /// The jobs that wait for a run, in the order of the queue.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = JobId> + '_ {
        self.waiting.values().copied()
    }

    /// The job that a run carries.
    pub(crate) fn carried_by(&self, run: RunId) -> Option<JobId> {
        self.carried.get(&run).copied()
    }
}

fn waits(job: &Job) -> bool {
    job.status == JobStatus::Pending && job.reason == Reason::Queued && job.is_for_a_run()
}
