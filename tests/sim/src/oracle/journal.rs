//! What must hold of journaled steps: a recorded one is not made again, and only a recorded one is used.

use std::sync::Arc;

use atlas_types::{FencingToken, Job, JobId};

use super::Oracle;
use crate::journal::steps_of;
use crate::workload::Agent;

impl Oracle {
    /// An attempt begins a step.
    pub(crate) fn step_made(&mut self, job: JobId, number: u64, token: FencingToken) {
        if self.recorded(job).is_some_and(|next| number < next) {
            self.violate(format!("step {number} of {job} is recorded and was made again under token {token}"));
        }
        if !self.made.insert((job, number, token)) {
            self.violate(format!("step {number} of {job} was made twice under token {token}"));
        }
    }

    /// Steps are recorded: the attempt that made them holds the lease.
    pub(super) fn steps_recorded(&mut self, job: JobId, from: u64, count: u64) {
        let journals = |job: &Arc<Job>| Agent::named(&job.agent) == Agent::Journaling;
        let Some(token) = self.jobs.get(&job).and_then(|record| record.live) else { return };
        if !self.truth.state().job(job).is_some_and(journals) {
            return;
        }
        if let Some(number) = (from..from + count).find(|number| !self.made.contains(&(job, *number, token))) {
            self.violate(format!("step {number} of {job} was recorded under token {token}, which did not make it"));
        }
    }

    /// An attempt uses the outcome of a step.
    pub(crate) fn step_used(&mut self, job: JobId, number: u64) {
        if self.recorded(job).is_some_and(|next| number >= next) {
            self.violate(format!("step {number} of {job} was used before it was recorded"));
        }
    }

    /// A job that ended well has all its steps.
    pub(super) fn check_steps(&mut self, job: &Job) {
        let next = job.journal.as_ref().map_or(0, |journal| journal.next());
        if next != steps_of(job.id) {
            self.violate(format!("{} completed with {next} of {} steps", job.id, steps_of(job.id)));
        }
    }

    /// The number of the next step; none for a job that has left the state.
    fn recorded(&self, job: JobId) -> Option<u64> {
        let state = self.truth.state();
        state.job(job)?;
        Some(state.journal(job).map_or(0, |journal| journal.next()))
    }
}
