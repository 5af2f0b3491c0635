//! Transitions of runs. The end of a step is recorded in the entry that ends its job, and so is the end of its run; what the next
//! step gets is computed elsewhere, because it needs schemas.

use std::sync::Arc;

use atlas_types::{
    Event, Failure, FailureKind, Job, JobStatus, RUNS_ENDED_KEPT, Run, RunChange, RunFailure, RunFault, RunId,
    RunStatus, RunStep, StepOf,
};

use super::Change;

impl Change<'_> {
    /// The run of a client's command: one of another namespace does not exist for it.
    pub(crate) fn own_run(&self, id: RunId) -> Option<&Arc<Run>> {
        self.state.runs.get(&id).filter(|run| run.namespace == self.origin.namespace)
    }

    /// Stores a run that changed and writes its event.
    pub(crate) fn put_run(&mut self, mut run: Run, change: RunChange) {
        run.version += 1;
        let run = Arc::new(run);
        let old = self.state.runs.insert(run.id, Arc::clone(&run));
        self.state.index.run(old.as_deref(), Some(&run));
        self.emit(Event::Run { change, run });
    }

    /// Records the end of the job of a step that no retry follows.
    pub(super) fn end_step(&mut self, job: &Job) {
        let Some(StepOf { run, index }) = job.step else { return };
        let Some(run) = self.state.runs.get(&run).filter(|run| !run.status.is_terminal()) else { return };
        if run.branches.is_some() {
            let run = (**run).clone();
            return self.end_branch(run, index, job);
        }
        // A person may have let an older job of the step run again: nobody waits for that one.
        let waits = |step: &&Arc<RunStep>| step.output.is_none() && step.job == job.first();
        let Some(step) = run.steps.last().filter(|_| run.current_step() == i64::from(index)).filter(waits) else {
            return;
        };
        let mut new = (**run).clone();
        match (job.status, &job.output) {
            (JobStatus::Completed, Some(output)) => {
                let step = RunStep { output: Some(output.clone()), ..(**step).clone() };
                if let Some(last) = new.steps.last_mut() {
                    *last = Arc::new(step);
                }
                if new.steps.len() as u64 == u64::from(new.total_steps) {
                    self.end_run(new, RunStatus::Completed, None);
                } else {
                    self.put_run(new, RunChange::StepEnded);
                }
            }
            (JobStatus::Cancelled, _) => self.fail_step(new, index, RunFault::Cancelled),
            _ => self.fail_step(new, index, RunFault::Job(failure_of(job))),
        }
    }

    /// The end of a step in a run with branches, which then decides what it does next.
    fn end_branch(&mut self, mut run: Run, index: u32, job: &Job) {
        let waits = |step: &&mut Arc<RunStep>| step.number == index && step.is_open() && step.job == job.first();
        let Some(step) = run.steps.iter_mut().find(waits) else { return };
        let (output, fault) = match (job.status, &job.output) {
            (JobStatus::Completed, Some(output)) => (Some(output.clone()), None),
            (JobStatus::Cancelled, _) => (None, Some(RunFault::Cancelled)),
            _ => (None, Some(RunFault::Job(failure_of(job)))),
        };
        *step = Arc::new(RunStep { output, fault, ..(**step).clone() });
        if let Some(branches) = &mut run.branches {
            branches.fresh = true;
        }
        self.put_run(run, RunChange::StepEnded);
    }

    fn fail_step(&mut self, run: Run, index: u32, fault: RunFault) {
        self.end_run(run, RunStatus::Failed, Some(RunFailure { step: Some(index), fault }));
    }

    /// Ends a run. Of the runs that have ended, those that ended first go.
    pub(crate) fn end_run(&mut self, mut run: Run, status: RunStatus, failure: Option<RunFailure>) {
        run.status = status;
        run.failure = failure;
        run.completed_at = self.at;
        run.ended = Some(self.state.event_seq.next());
        let id = run.id;
        self.put_run(run, RunChange::Ended);
        self.end_carried(id);
        while self.state.index.chains.ended_total() > RUNS_ENDED_KEPT {
            let Some(oldest) = self.state.index.chains.ended_first() else { return };
            let old = self.state.runs.remove(&oldest);
            self.state.index.run(old.as_deref(), None);
        }
    }

    /// Cancels a run that has not ended, and the jobs of its steps with it.
    pub(crate) fn stop_run(&mut self, id: RunId) {
        let Some(run) = self.state.runs.get(&id).filter(|run| !run.status.is_terminal()) else { return };
        let run = (**run).clone();
        let jobs = self.step_jobs(&run);
        self.end_run(run, RunStatus::Cancelled, None);
        for job in jobs {
            self.cancel((*job).clone());
        }
    }

    /// A run that has ended ends the job that it carries.
    pub(crate) fn end_carried(&mut self, id: RunId) {
        let carried = self.state.index.runs.carried_by(id).and_then(|job| self.state.jobs.get(job));
        let (Some(job), Some(run)) = (carried.map(|job| (**job).clone()), self.state.runs.get(&id).cloned()) else {
            return;
        };
        match run.status {
            RunStatus::Completed => {
                self.end(Job { output: Some(run.output()), ..job }, JobStatus::Completed, None);
            }
            RunStatus::Failed => {
                let kind = match run.failure.as_ref().map(|failure| &failure.fault) {
                    Some(RunFault::Job(failure)) => failure.kind,
                    _ => FailureKind::Agent,
                };
                self.end(job, JobStatus::Failed, Some(Failure { kind, error: run.error().into() }));
            }
            RunStatus::Cancelled => {
                self.end(job, JobStatus::Cancelled, None);
            }
            RunStatus::Pending | RunStatus::Running => {}
        }
    }

    /// The jobs of a run's steps that have not ended.
    pub(crate) fn step_jobs(&self, run: &Run) -> Vec<Arc<Job>> {
        let open = run.steps.iter().filter(|step| step.is_open());
        open.filter_map(|step| self.state.step_job(step.job).cloned()).collect()
    }
}

fn failure_of(job: &Job) -> Failure {
    let unknown = || Failure { kind: FailureKind::Internal, error: "the job ended without an output".into() };
    job.failure.clone().unwrap_or_else(unknown)
}
