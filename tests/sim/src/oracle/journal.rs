//! What must hold of journaled steps: a recorded one is not made again, and only a recorded one is used.

use std::sync::Arc;

use atlas_types::{FencingToken, Fork, Job, JobId, Step, StepKey};

use super::Oracle;
use crate::coverage::Coverage;
use crate::journal::programs::calls_of;
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
    pub(super) fn steps_recorded(&mut self, job: JobId, from: u64, steps: &[Arc<Step>]) {
        let count = steps.len() as u64;
        let Some(token) = self.jobs.get(&job).and_then(|record| record.live) else { return };
        match self.truth.state().job(job).map(|job| Agent::named(&job.agent)) {
            Some(Agent::Journaling) => {}
            Some(Agent::Program) => {
                self.calls.entry(job).or_default().extend(steps.iter().map(|step| step.key));
                return;
            }
            _ => return,
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

    /// An attempt of a durable program begins a call.
    pub(crate) fn call_made(&mut self, job: JobId, key: StepKey, token: FencingToken) {
        if self.calls.get(&job).is_some_and(|calls| calls.contains(&key)) {
            self.violate(format!("the call {key} of {job} is recorded and was made again under token {token}"));
        }
    }

    /// An attempt of a durable program uses the result of a call: that of the next record.
    pub(crate) fn call_used(&mut self, job: JobId, key: StepKey, token: FencingToken) {
        let used = self.calls_used.entry(token).or_default();
        let next = *used;
        *used += 1;
        let is_known = self.truth.state().job(job).is_some();
        match self.calls.get(&job).and_then(|calls| calls.get(next)) {
            Some(recorded) if *recorded == key => {}
            Some(recorded) => {
                let place = format!("call {next} of {job} is recorded as {recorded}");
                self.violate(format!("{place}, and the attempt under token {token} has used {key}"));
            }
            None if is_known => self.violate(format!("the call {key} of {job} was used before it was recorded")),
            None => {}
        }
    }

    /// A job that ended well has all its steps.
    pub(super) fn check_steps(&mut self, job: &Job) {
        let next = job.journal.as_ref().map_or(0, |journal| journal.next());
        let steps = match Agent::named(&job.agent) {
            Agent::Journaling => steps_of(self.path_of(job.id)),
            Agent::Program => calls_of(job.id),
            _ => return,
        };
        if next != steps {
            self.violate(format!("{} completed with {next} of {steps} steps", job.id));
        }
    }

    /// A fork begins with as many steps as were asked for, and with no other job's place in a family or a run.
    pub(super) fn forked(&mut self, job: &Job, fork: &Fork, coverage: &mut Coverage) {
        coverage.count("jobs forked");
        self.paths.insert(job.id, self.path_of(fork.from));
        let next = self.recorded(job.id).unwrap_or_default();
        if next != fork.steps {
            self.violate(format!("{} is a fork after {} steps and begins with {next}", job.id, fork.steps));
        }
        if job.spawned.is_some() || job.step.is_some() || job.retry_count > 0 || job.carried.is_some() {
            self.violate(format!("the fork {} belongs to a family or a run", job.id));
        }
    }

    /// A client was told that its fork is recorded.
    pub(crate) fn fork_acknowledged(&mut self, job: JobId) {
        self.acknowledged.insert(job);
        if !self.paths.contains_key(&job) {
            self.violate(format!("the fork {job} was acknowledged and is not recorded"));
        }
    }

    /// A fork was refused because its last step was folded after the journal had been read.
    pub(crate) fn check_folded(&mut self, job: JobId, steps: u64) {
        let state = self.truth.state();
        let journal = state.journal(job).or_else(|| state.job(job)?.journal.as_ref());
        if journal.is_some_and(|journal| journal.first() <= steps) {
            self.violate(format!("a fork of {job} after {steps} steps was refused although they are recorded"));
        }
    }

    /// The job whose steps the attempts of a job make.
    pub(crate) fn path_of(&self, job: JobId) -> JobId {
        self.paths.get(&job).copied().unwrap_or(job)
    }

    /// The number of the next step; none for a job that has left the state.
    fn recorded(&self, job: JobId) -> Option<u64> {
        let state = self.truth.state();
        state.job(job)?;
        Some(state.journal(job).map_or(0, |journal| journal.next()))
    }
}
