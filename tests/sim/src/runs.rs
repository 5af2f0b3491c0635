//! Runs that carry jobs: a run engine as a leader task, in the simplest way.
//!
//! A run starts a few steps one after the other, each as a child of the job that it carries, and then ends the job. How far it is can be
//! read from the replicated state and from the committed events, so it goes on under any leader. One in eight never ends its job, which
//! its time limit ends.

use std::collections::BTreeSet;
use std::sync::Arc;

use atlas_state::State;
use atlas_types::{
    Carried, CarriedEnd, CarryJob, Command, EndCarried, Event, EventRecord, Failure, FailureKind, Job, JobChange,
    JobId, JobStatus, Namespace, Request, RunId, SpawnedBy,
};

use crate::Bug;
use crate::rng::mix;
use crate::workload::{self, Agent};

/// A job of this depth may not spawn.
const DEPTH_MAX: u32 = 3;

/// What committed events tell of runs beside the state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Runs {
    /// Every job that was ever spawned: those that are gone from the state have ended.
    spawned: Arc<BTreeSet<JobId>>,
    /// Carried jobs that were cancelled.
    cancelled: Arc<BTreeSet<JobId>>,
}

impl Runs {
    /// An event is committed.
    pub(crate) fn see(&mut self, record: &EventRecord) {
        let Event::Job { change, job, .. } = &record.event else { return };
        if *change == JobChange::Submitted && job.spawned.is_some() {
            Arc::make_mut(&mut self.spawned).insert(job.id);
        }
        if job.status == JobStatus::Cancelled && job.carried.is_some() {
            Arc::make_mut(&mut self.cancelled).insert(job.id);
        }
    }

    /// What runs do next: each job that waits for a run gets one, and each run goes on. `begun` are the runs that this leader began.
    pub(crate) fn advance(&self, state: &State, begun: &mut BTreeSet<RunId>, bug: Option<Bug>) -> Vec<Request> {
        let mut commands = Vec::new();
        for job in state.waiting_for_runs() {
            let run = run_of(job.id);
            begun.insert(run);
            commands.push(Command::CarryJob(CarryJob { job: job.id, run }));
        }
        let mut commands: Vec<Request> = commands.into_iter().map(workload::request).collect();
        let running = state.jobs(&Namespace::default_namespace(), Some(JobStatus::Running), None);
        for (job, carried) in running.filter_map(|job| Some((job, job.carrier()?))) {
            if bug != Some(Bug::RunForgotten) || begun.contains(&carried.run) {
                commands.extend(self.next(state, job, carried));
            }
        }
        if bug == Some(Bug::RunGoesOn) {
            let next = |job: &JobId| {
                let steps = (1..=steps_of(*job, 0)).map(|number| step_id(*job, number));
                steps.into_iter().find(|step| !self.is_known(state, *step))
            };
            commands.extend(self.cancelled.iter().filter_map(next).map(stray));
        }
        commands
    }

    /// What a run does next; nothing while it waits for a step.
    fn next(&self, state: &State, job: &Job, carried: Carried) -> Option<Request> {
        let by = SpawnedBy::Run { job: job.id, run: carried.run };
        for number in 1..=steps_of(job.id, job.depth()) {
            let step = by.child(number);
            let mut family = state.children(job.id).filter(|child| child.first() == step).peekable();
            if family.peek().is_none() && !self.spawned.contains(&step) {
                return Some(workload::spawn(by, number, agent_of(step)));
            }
            if family.any(|child| !child.status.is_terminal()) {
                return None;
            }
        }
        if hangs(job.id) {
            return None;
        }
        let end = if mix(job.id.0 ^ 5).is_multiple_of(5) {
            let failure = Failure { kind: FailureKind::Agent, error: "boom".into() };
            CarriedEnd::Failed { failure, output: None }
        } else {
            CarriedEnd::Completed(workload::output_of_run(carried.run))
        };
        let command = EndCarried { job: job.id, run: carried.run, end, metadata: None };
        Some(workload::request(Command::EndCarried(command)))
    }

    fn is_known(&self, state: &State, job: JobId) -> bool {
        state.job(job).is_some() || self.spawned.contains(&job)
    }
}

/// The run that carries a job.
pub(crate) fn run_of(job: JobId) -> RunId {
    RunId(mix(job.0 ^ 0x5265_756E))
}

/// The id of a step.
pub(crate) fn step_id(job: JobId, number: u64) -> JobId {
    SpawnedBy::Run { job, run: run_of(job) }.child(number)
}

/// How many steps a run starts.
pub(crate) fn steps_of(job: JobId, depth: u32) -> u64 {
    if depth < DEPTH_MAX { mix(job.0 ^ 3) % 3 } else { 0 }
}

/// Whether a run never ends its job.
pub(crate) fn hangs(job: JobId) -> bool {
    mix(job.0 ^ 8).is_multiple_of(8)
}

fn agent_of(step: JobId) -> Agent {
    let agents = [Agent::Echo, Agent::Flaky, Agent::Parent, Agent::Sleeper, Agent::Carried];
    agents[(mix(step.0) % agents.len() as u64) as usize]
}

/// A step of a run whose job has ended, started as a job of its own.
fn stray(step: JobId) -> Request {
    workload::submit(step.0, step, Agent::Echo, 0)
}
