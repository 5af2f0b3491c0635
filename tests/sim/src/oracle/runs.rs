//! What must hold of carried jobs: one run carries each, no lease does, and a run does nothing once its job has ended.

use atlas_types::{FailureKind, Job, JobId, JobStatus, RunId};

use super::Oracle;
use crate::coverage::Coverage;
use crate::runs::{hangs, step_id, steps_of};
use crate::workload::{self, Agent};

/// A run has at most so many steps.
const STEPS_MAX: u64 = 2;

impl Oracle {
    /// A run begins to carry a job.
    pub(super) fn carried(&mut self, job: &Job, coverage: &mut Coverage) {
        coverage.count("jobs carried");
        let id = job.id;
        let run = job.carried.map(|carried| carried.run);
        if job.lease.is_some() || run.is_none() || Agent::named(&job.agent) != Agent::Carried {
            self.violate(format!("{id} is carried by {run:?} and holds {:?}", job.lease));
        }
        let Some(run) = run else { return };
        if let Some(other) = self.carried.insert(run, id) {
            self.violate(format!("{run} carries {other} and {id}"));
        }
        self.steps.extend((1..=STEPS_MAX).map(|number| (step_id(id, number), id)));
    }

    /// A job was submitted: a step belongs to a job that is carried.
    pub(super) fn step_submitted(&mut self, job: &Job) {
        let Some(parent) = self.steps.get(&job.id).copied() else { return };
        let is_child = job.spawned.is_some_and(|spawned| spawned.by == parent);
        if !is_child || !self.carried.values().any(|carried| *carried == parent) {
            self.violate(format!("{} was started as a step of {parent}, which no run carries", job.id));
        }
    }

    /// A carried job ended.
    pub(super) fn carried_ended(&mut self, job: &Job, run: RunId, coverage: &mut Coverage) {
        let id = job.id;
        if self.carried.remove(&run) != Some(id) {
            self.violate(format!("{id} ended under {run}, which did not carry it"));
        }
        if job.spawned.is_some() {
            coverage.count("carried children ended");
        }
        match job.status {
            JobStatus::Completed if job.output != Some(workload::output_of_run(run)) => {
                self.violate(format!("{id} completed under {run} with {:?}", job.output));
            }
            JobStatus::Cancelled => coverage.count("carried jobs cancelled"),
            _ => {}
        }
        if job.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Timeout) {
            coverage.count("carried jobs overdue");
            if !hangs(id) && !self.waits_for_step(job) {
                self.violate(format!("{run} stood still until the time of {id} was over"));
            }
        }
    }

    /// Whether a step, or a retry of one, has not ended.
    fn waits_for_step(&self, job: &Job) -> bool {
        let steps: Vec<JobId> = (1..=steps_of(job.id, job.depth())).map(|number| step_id(job.id, number)).collect();
        let is_step = |id: JobId, original: Option<JobId>| steps.contains(&original.unwrap_or(id));
        self.jobs.iter().any(|(id, record)| record.ended.is_none() && is_step(*id, record.original))
    }
}
