//! RUN-1: a run that has not ended goes on with its next step, or waits for exactly one job, the last of its current step. All steps
//! before have outputs. A run with branches waits for the jobs of all its steps that have not ended. A bounded number of ended runs is kept.

use std::collections::BTreeSet;

use atlas_types::{RUNS_ENDED_KEPT, Run, RunStatus};

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    for run in state.runs.values() {
        let id = run.id;
        let total = run.total_steps as usize;
        if run.branches.is_some() {
            check_branches(state, run)?;
        } else {
            let numbered = run.steps.iter().enumerate().all(|(position, step)| step.number as usize == position);
            ensure(numbered, || format!("the steps of {id} have wrong numbers"))?;
            ensure(run.steps.len() <= total, || format!("{id} has {} steps of {total}", run.steps.len()))?;
        }
        let (last, before) = run.steps.split_last().map_or((None, &[][..]), |(last, before)| (Some(last), before));
        ensure(run.branches.is_some() || before.iter().all(|step| step.output.is_some()), || {
            format!("a step of {id} has no output")
        })?;
        let is_over = run.status.is_terminal();
        ensure(is_over == run.ended.is_some(), || format!("{id} is {:?} and ended with {:?}", run.status, run.ended))?;
        let failed = run.status == RunStatus::Failed;
        ensure(failed == run.failure.is_some(), || format!("{id} is {:?} with {:?}", run.status, run.failure))?;
        ensure((run.status != RunStatus::Pending) || last.is_none(), || format!("{id} has not begun and has steps"))?;
        if run.branches.is_none() {
            check_wait(state, run)?;
        }
    }
    let ended = state.index.chains.ended_total();
    ensure(ended <= RUNS_ENDED_KEPT, || format!("{ended} ended runs are kept"))
}

/// Each step has one job at a time and none that has an output or does not run; each open one has a job that has not ended.
fn check_branches(state: &State, run: &Run) -> Result<(), String> {
    let (id, mut ended) = (run.id, BTreeSet::new());
    for left in run.branches.iter().flat_map(|branches| &branches.left) {
        ensure(left.number < run.total_steps, || format!("{id} has no step {}", left.number))?;
        ensure(ended.insert(left.number), || format!("{id} leaves out step {} twice", left.number))?;
    }
    for step in run.steps.iter() {
        ensure(step.number < run.total_steps, || format!("{id} has no step {}", step.number))?;
        let is_first = step.fault.is_some() || ended.insert(step.number);
        ensure(is_first, || format!("{id} runs step {} again", step.number))?;
        ensure(step.output.is_none() || step.fault.is_none(), || format!("{id} has a step that failed and completed"))?;
        if step.is_open() && !run.status.is_terminal() {
            let job = state.index.chains.job_of(step.job).and_then(|job| state.jobs.get(job));
            let waits = job.is_some_and(|job| job.step.is_some_and(|of| of.run == id && of.index == step.number));
            ensure(waits, || format!("step {} of {id} waits for no job", step.number))?;
        }
    }
    let waits = run.status.is_terminal() || run.is_ready() || run.steps.iter().any(|step| step.is_open());
    ensure(waits, || format!("{id} waits for nothing"))
}

fn check_wait(state: &State, run: &Run) -> Result<(), String> {
    if run.status.is_terminal() || run.is_ready() {
        let done = run.steps.len() as u64 == u64::from(run.total_steps) && run.total_steps > 0;
        let all = done && run.steps.last().is_some_and(|step| step.output.is_some());
        return ensure(run.status.is_terminal() || !all, || format!("{} goes on after its last step", run.id));
    }
    let first = run.steps.last().map(|step| step.job);
    let job = first.and_then(|first| state.index.chains.job_of(first)).and_then(|job| state.jobs.get(job));
    ensure(job.is_some_and(|job| job.step.is_some_and(|step| step.run == run.id)), || {
        format!("{} waits for no job", run.id)
    })
}
