//! What a run with branches does next: steps begin together, others do not run, or the run ends.

use std::sync::Arc;

use atlas_types::{
    Payload, Rejection, Run, RunChange, RunStatus, RunStep, RunWave, StepLeft, StepOf, WaveEnd, WaveStep,
};

use super::{check_bytes, submit_job};
use crate::change::Change;

/// The run is ready, and at the version that the wave continues.
pub(super) fn apply(
    wave: &RunWave,
    plan: Option<&Payload>,
    change: &mut Change<'_>,
    mut run: Run,
) -> Result<(), Rejection> {
    check_numbers(wave, &run)?;
    check_bytes(change.state, plan.map_or(0, Payload::inline_bytes), 0)?;
    let mut jobs = Vec::with_capacity(wave.start.len());
    for (step, record) in wave.start.iter().zip(run.steps.len()..) {
        if step.submit.id != run.job_at(record) {
            return Err(Rejection::StaleRun);
        }
        jobs.push(submit_job::check_step(&step.submit, change, StepOf { run: run.id, index: step.number })?);
    }
    let open = change.step_jobs(&run);
    // It ends when nothing runs any more, and goes on if it does not.
    let waits = !open.is_empty() || !wave.start.is_empty() || wave.more;
    let fits = match &wave.end {
        None => waits,
        Some(WaveEnd::Complete) => !waits,
        Some(WaveEnd::Fail(_)) => true,
    };
    if !fits {
        return Err(Rejection::StaleRun);
    }

    run.status = RunStatus::Running;
    run.plan = plan.cloned().or(run.plan);
    run.steps.extend(wave.start.iter().map(|step| {
        Arc::new(RunStep {
            number: step.number,
            agent: Arc::clone(&step.agent),
            job: step.submit.id,
            strategy: step.strategy,
            output: None,
            fault: None,
        })
    }));
    let branches = run.branches.get_or_insert_default();
    branches.fresh = wave.more;
    branches.left.extend(wave.left.iter().cloned());
    match &wave.end {
        Some(WaveEnd::Complete) => change.end_run(run, RunStatus::Completed, None),
        Some(WaveEnd::Fail(failure)) => {
            change.end_run(run, RunStatus::Failed, Some(failure.clone()));
            for job in open {
                change.cancel((*job).clone());
            }
        }
        // The run first: a job whose input was found to be wrong ends at once.
        None => {
            let jobs: Vec<_> = jobs.into_iter().map(|job| submit_job::of_run(job, &run)).collect();
            change.put_run(run, RunChange::StepStarted);
            jobs.into_iter().for_each(|job| submit_job::record(change, job));
        }
    }
    Ok(())
}

/// Each step is one of the chain and has not ended. A wave that ends the run starts nothing.
fn check_numbers(wave: &RunWave, run: &Run) -> Result<(), Rejection> {
    let left = |number: u32| {
        let known = run.branches.iter().flat_map(|branches| &branches.left);
        known.chain(&wave.left).filter(|left| left.number == number).count()
    };
    let is_taken = |step: &Arc<RunStep>, number: u32| step.number == number && step.fault.is_none();
    let begins = |step: &WaveStep| {
        let twice = wave.start.iter().filter(|other| other.number == step.number).count() > 1;
        let taken = run.steps.iter().any(|known| is_taken(known, step.number));
        step.number < run.total_steps && !twice && !taken && left(step.number) == 0
    };
    let goes = |step: &StepLeft| {
        let begun = run.steps.iter().any(|known| known.number == step.number);
        step.number < run.total_steps && !begun && left(step.number) == 1
    };
    let ends = wave.end.is_none() || (wave.start.is_empty() && !wave.more);
    match ends && wave.start.iter().all(begins) && wave.left.iter().all(goes) {
        true => Ok(()),
        false => Err(Rejection::StaleRun),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn branches_run_side_by_side() {
        check(
            "level 6; agent a; agent b; node n1; start r1 steps=4 --
            wave r1 start=0:a; grant r1/0 n1; complete r1/0 output=1; show r1; wave r1 start=1:a,2:b; show r1; wave r1 start=3:a; grant r1/1 n1;
            complete r1/1 output=2; show r1; wave r1 left=3 more=true; show r1; cancel r1/2; show r1; wave r1 end=true; show r1; wave r1 end=true",
            expect![[r#"
                r1 step_started running step 0
                r1/0 Submitted pending→pending Queued
                r1/0 Granted pending→running on n1 token 1 attempt 1
                r1/0 Ended running→completed
                r1 step_ended running step 0
                r1: running ready version 3 of 4 steps ["0 a Some(1)"]
                r1 step_started running step 2
                r1/1 Submitted pending→pending Queued
                r1/2 Submitted pending→pending Queued
                r1: running version 4 of 4 steps ["0 a Some(1)", "1 a None", "2 b None"]
                ! the run has changed or ended
                r1/1 Granted pending→running on n1 token 2 attempt 1
                r1/1 Ended running→completed
                r1 step_ended running step 2
                r1: running ready version 5 of 4 steps ["0 a Some(1)", "1 a Some(2)", "2 b None"]
                r1 step_started running step 2
                r1: running ready version 6 of 4 steps ["0 a Some(1)", "1 a Some(2)", "2 b None"]
                r1/2 Ended pending→cancelled
                r1 step_ended running step 2
                r1: running ready version 7 of 4 steps ["0 a Some(1)", "1 a Some(2)", "2 b None Job was cancelled"]
                r1 ended completed step 2
                r1: completed version 8 of 4 steps ["0 a Some(1)", "1 a Some(2)", "2 b None Job was cancelled"]
                ! the run has changed or ended
            "#]],
        );
    }

    #[test]
    fn a_step_is_tried_again_and_a_failed_run_cancels_what_runs() {
        check(
            "level 6; agent a; node n1; start r1 steps=2 --
            wave r1 start=0:a,1:a; grant r1/0 n1; fail r1/0 error=boom; show r1; wave r1 start=0:a; show r1; wave r1 start=0:a; grant r1/2 n1;
            fail r1/2 error=again; wave r1 fail=no step=0; show r1",
            expect![[r#"
                r1 step_started running step 1
                r1/0 Submitted pending→pending Queued
                r1/1 Submitted pending→pending Queued
                r1/0 Granted pending→running on n1 token 1 attempt 1
                r1/0 Ended running→failed Agent: boom
                r1 step_ended running step 1
                r1: running ready version 3 of 2 steps ["0 a None boom", "1 a None"]
                r1 step_started running step 1
                r1/2 Submitted pending→pending Queued
                r1: running version 4 of 2 steps ["0 a None boom", "1 a None", "0 a None"]
                ! the run has changed or ended
                r1/2 Granted pending→running on n1 token 2 attempt 1
                r1/2 Ended running→failed Agent: again
                r1 step_ended running step 1
                r1 ended failed step 1: no
                r1/1 Ended pending→cancelled
                r1: failed version 6 of 2 steps ["0 a None boom", "1 a None", "0 a None again"] no
            "#]],
        );
    }

    #[test]
    fn a_cancelled_run_cancels_all_its_branches() {
        check(
            "level 6; agent a; node n1; start r1 steps=3 -- wave r1 start=0:a,1:a refused=input; show r1; wave r1 start=2:a; cancel-run r1; show r1",
            expect![[r#"
                r1 step_started running step 1
                r1/0 Submitted pending→pending Queued
                r1/0 Granted pending→running without a lease
                r1/0 Ended running→failed Agent: boom
                r1 step_ended running step 1
                r1/1 Submitted pending→pending Queued
                r1/1 Granted pending→running without a lease
                r1/1 Ended running→failed Agent: boom
                r1 step_ended running step 1
                r1: running ready version 4 of 3 steps ["0 a None boom", "1 a None boom"]
                r1 step_started running step 2
                r1/2 Submitted pending→pending Queued
                r1 ended cancelled step 2: Chain execution was cancelled
                r1/2 Ended pending→cancelled
                r1: cancelled version 6 of 3 steps ["0 a None boom", "1 a None boom", "2 a None"] Chain execution was cancelled
            "#]],
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        check(
            "level 6; agent a; start r1 steps=2; start r2 steps=2 --
            wave r1 start=2:a; wave r1 start=0:a,0:a; wave r1 start=0:a left=0; wave r1; wave r1 start=0:a end=true; wave r1 left=1,1; wave r1 start=0:none;
            advance r2 agent=a; wave r2 start=1:a; show r1",
            expect![[r#"
                ! the run has changed or ended
                ! the run has changed or ended
                ! the run has changed or ended
                ! the run has changed or ended
                ! the run has changed or ended
                ! the run has changed or ended
                ! the agent version is no longer registered with this package
                r2 step_started running step 0
                r2/0 Submitted pending→pending Queued
                ! the run has changed or ended
                r1: pending ready version 1 of 2 steps []
            "#]],
        );
    }
}
