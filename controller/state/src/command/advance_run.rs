//! A run goes on: its next step begins, or it ends. The command was computed for one version of the run.

use std::sync::Arc;

use atlas_types::{AdvanceRun, Outcome, Payload, Rejection, Run, RunChange, RunNext, RunStatus, RunStep, StepOf};

use super::{check_bytes, check_size, submit_job};
use crate::change::Change;

pub(super) fn apply(command: &AdvanceRun, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let run = change.own_run(command.run).ok_or(Rejection::UnknownRun { run: command.run })?;
    if run.version != command.version || !run.is_ready() {
        return Err(Rejection::StaleRun);
    }
    let plan_bytes = command.plan.as_ref().map_or(0, Payload::inline_bytes);
    check_size(plan_bytes)?;
    let mut new = (**run).clone();
    match &command.next {
        RunNext::Fail(failure) => change.end_run(new, RunStatus::Failed, Some(failure.clone())),
        RunNext::Complete if new.total_steps == 0 => change.end_run(new, RunStatus::Completed, None),
        RunNext::Complete => return Err(Rejection::StaleRun),
        RunNext::Step { agent, strategy, submit } => {
            if new.current_step() + 1 >= i64::from(new.total_steps) || submit.id != new.next_job() {
                return Err(Rejection::StaleRun);
            }
            check_bytes(change.state, plan_bytes, 0)?;
            let job = submit_job::check_step(submit, change, step_of(&new))?;
            new.status = RunStatus::Running;
            new.plan = command.plan.clone().or(new.plan);
            new.steps.push(Arc::new(RunStep {
                number: step_of(&new).index,
                agent: agent.clone(),
                job: submit.id,
                strategy: *strategy,
                output: None,
                fault: None,
            }));
            start_step(change, new, job);
        }
        RunNext::Wave(wave) => super::wave::apply(wave, command.plan.as_ref(), change, new)?,
    }
    Ok(Outcome::Done)
}

/// The place of the next step.
fn step_of(run: &Run) -> StepOf {
    StepOf { run: run.id, index: u32::try_from(run.steps.len()).unwrap_or(u32::MAX) }
}

/// The run first: a job whose input was found to be wrong ends at once, and the run with it.
fn start_step(change: &mut Change<'_>, run: Run, job: submit_job::Checked) {
    let job = submit_job::of_run(job, &run);
    change.put_run(run, RunChange::StepStarted);
    submit_job::record(change, job);
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_run_goes_from_step_to_step() {
        check(
            "level 6; agent a; agent b; node n1; start r1 steps=2 --
            advance r1 agent=a; advance r1 agent=b run-version=2; show r1; grant r1/0 n1; complete r1/0 output=1; show r1; advance r1 agent=b strategy=coerce;
            advance r1 agent=b; show r1; grant r1/1 n1; complete r1/1 output=2; show r1; advance r1 agent=a",
            expect![[r#"
                r1 step_started running step 0
                r1/0 Submitted pending→pending Queued
                ! the run has changed or ended
                r1: running version 2 of 2 steps ["a None"]
                r1/0 Granted pending→running on n1 token 1 attempt 1
                r1/0 Ended running→completed
                r1 step_ended running step 0
                r1: running ready version 3 of 2 steps ["a Some(1)"]
                r1 step_started running step 1
                r1/1 Submitted pending→pending Queued
                ! the run has changed or ended
                r1: running version 4 of 2 steps ["a Some(1)", "b None"]
                r1/1 Granted pending→running on n1 token 2 attempt 1
                r1/1 Ended running→completed
                r1 ended completed step 1
                r1: completed version 5 of 2 steps ["a Some(1)", "b Some(2)"]
                ! the run has changed or ended
            "#]],
        );
    }

    #[test]
    fn the_retries_of_a_step_belong_to_it() {
        check(
            "level 6; agent a retries=1; node n1; start r1 steps=1; start r2 steps=1; advance r1 agent=a; advance r2 agent=a --
            grant r1/0 n1; fail r1/0 error=boom; show r1; clock +1; wake r1/0'1; grant r1/0'1 n1; complete r1/0'1 output=3; show r1;
            grant r2/0 n1; fail r2/0 error=boom; clock +9; wake r2/0'1; grant r2/0'1 n1; fail r2/0'1 error=again; show r2",
            expect![[r#"
                r1/0 Granted pending→running on n1 token 1 attempt 1
                r1/0 Ended running→failed Agent: boom
                r1/0'1 Submitted pending→pending Backoff { until: ClusterTime(2000000) }
                r1: running version 2 of 1 steps ["a None"]
                r1/0'1 Woken pending→pending Queued
                r1/0'1 Granted pending→running on n1 token 2 attempt 1
                r1/0'1 Ended running→completed
                r1 ended completed step 0
                r1: completed version 3 of 1 steps ["a Some(3)"]
                r2/0 Granted pending→running on n1 token 3 attempt 1
                r2/0 Ended running→failed Agent: boom
                r2/0'1 Submitted pending→pending Backoff { until: ClusterTime(3000000) }
                r2/0'1 Woken pending→pending Queued
                r2/0'1 Granted pending→running on n1 token 4 attempt 1
                r2/0'1 Ended running→failed Agent: again
                r2 ended failed step 0: Agent failed at step 0 (a): again
                r2: failed version 3 of 1 steps ["a None"] Agent failed at step 0 (a): again
            "#]],
        );
    }

    #[test]
    fn a_run_ends_with_the_step_that_fails() {
        check(
            "level 6; agent a; start r1 steps=2; start r2 steps=2; start r3 steps=1; start r4 steps=0; start r5 steps=1 --
            advance r1 agent=a refused=input; show r1; advance r2 agent=a; cancel r2/0; show r2; advance r3 fail=no; show r3; advance r4 complete=true; show r4;
            advance r5 complete=true; advance r5 agent=none; advance r5 agent=a id=7; advance r9 agent=a",
            expect![[r#"
                r1 step_started running step 0
                r1/0 Submitted pending→pending Queued
                r1/0 Granted pending→running without a lease
                r1/0 Ended running→failed Agent: boom
                r1 ended failed step 0: Agent failed at step 0 (a): boom
                r1: failed version 3 of 2 steps ["a None"] Agent failed at step 0 (a): boom
                r2 step_started running step 0
                r2/0 Submitted pending→pending Queued
                r2/0 Ended pending→cancelled
                r2 ended failed step 0: Agent failed at step 0 (a): Job was cancelled
                r2: failed version 3 of 2 steps ["a None"] Agent failed at step 0 (a): Job was cancelled
                r3 ended failed step -1: no
                r3: failed version 2 of 1 steps [] no
                r4 ended completed step -1
                r4: completed version 2 of 0 steps []
                ! the run has changed or ended
                ! the agent version is no longer registered with this package
                ! the run has changed or ended
                ! no such run: run-0000000000000009
            "#]],
        );
    }

    #[test]
    fn a_job_that_a_person_lets_run_again_is_no_step() {
        check(
            "level 6; agent a; node n1; start r1 steps=2; advance r1 agent=a; grant r1/0 n1; fail r1/0 --
            show r1; retry r1/0 j7; grant j7 n1; complete j7 output=1; show r1",
            expect![[r#"
                r1: failed version 3 of 2 steps ["a None"] Agent failed at step 0 (a): boom
                j7 Submitted pending→pending Queued
                j7 Granted pending→running on n1 token 2 attempt 1
                j7 Ended running→completed
                r1: failed version 3 of 2 steps ["a None"] Agent failed at step 0 (a): boom
            "#]],
        );
    }
}
