//! A run ends the job that it carries.

use std::sync::Arc;

use atlas_types::{CarriedEnd, EndCarried, JobStatus, Outcome, Rejection};

use super::check_report;
use crate::change::{Change, carried_job};

pub(super) fn apply(command: &EndCarried, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = carried_job(change.state.jobs.get(command.job), command.run)?;
    let output = match &command.end {
        CarriedEnd::Completed(output) => Some(output),
        CarriedEnd::Failed { output, .. } => output.as_ref(),
    };
    check_report(output, None, command.metadata.as_ref())?;

    let mut new = (**job).clone();
    new.output = output.cloned();
    if let Some(metadata) = &command.metadata {
        new.metadata = Arc::clone(metadata);
    }
    Ok(match &command.end {
        CarriedEnd::Completed(_) => change.end(new, JobStatus::Completed, None),
        CarriedEnd::Failed { failure, .. } => change.end(new, JobStatus::Failed, Some(failure.clone())),
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;
    use crate::tests::script::Run;

    #[test]
    fn the_run_that_carries_a_job_ends_it_once() {
        check(
            "level 6; agent a carried=true; job j1; job j2; carry j1 run=7; carry j2 run=8 --
            end-run j1 run=8; end-run j9 run=7; end-run j1 output=3; end-run j1 run=7 output=4; show j1; end-run j2 error=no output=5; show j2",
            expect![[r#"
                ! the run does not carry this job
                ! the run does not carry this job
                j1 Ended running→completed
                ! the run does not carry this job
                j1: completed attempt 0 output 3
                j2 Ended running→failed Agent: no
                j2: failed attempt 0 output 5
            "#]],
        );
    }

    #[test]
    fn a_failure_is_followed_by_a_retry_that_waits_for_a_run_of_its_own() {
        check(
            "level 6; agent a carried=true retries=1; node n1; job j1; carry j1 run=7 --
            end-run j1 error=boom; carry j1'1 run=7; clock +1; wake j1'1; grant j1'1 n1; carry j1'1 run=8; end-run j1'1 error=boom",
            expect![[r#"
                j1 Ended running→failed Agent: boom
                j1'1 Submitted pending→pending Backoff { until: ClusterTime(2000000) }
                ! the job is not due yet
                j1'1 Woken pending→pending Queued
                ! a run carries the jobs of this agent; they get no lease
                j1'1 Carried pending→running by run-0000000000000008
                j1'1 Ended running→failed Agent: boom
            "#]],
        );
    }

    #[test]
    fn the_end_of_a_run_of_a_chain_ends_the_job_that_it_carries() {
        check(
            "level 6; agent a; agent c carried=true; node n1; start r1 steps=1; start r2 steps=1; start r3 steps=2; job j1 agent=c; job j2 agent=c;
            job j3 agent=c; carry j1 run=1; carry j2 run=2; carry j3 run=3; advance r1 agent=a; advance r2 agent=a; advance r3 agent=a;
            grant r1/0 n1; grant r2/0 n1 -- complete r1/0; show j1; fail r2/0; cancel-run r3; show j3; start r4 steps=1; cancel-run r4; job j4 agent=c;
            carry j4 run=4",
            expect![[r#"
                r1/0 Ended running→completed
                r1 ended completed step 0
                j1 Ended running→completed
                j1: completed attempt 0 output {}
                r2/0 Ended running→failed Agent: boom
                r2 ended failed step 0: Agent failed at step 0 (a): boom
                j2 Ended running→failed Agent: Agent failed at step 0 (a): boom
                r3 ended cancelled step 0: Chain execution was cancelled
                j3 Ended running→cancelled
                r3/0 Ended pending→cancelled
                j3: cancelled attempt 0
                r4 started pending step -1
                r4 ended cancelled step -1: Chain execution was cancelled
                j4 Submitted pending→pending Queued
                j4 Carried pending→running by run-0000000000000004
                j4 Ended running→cancelled
            "#]],
        );
    }

    #[test]
    fn the_end_of_a_carried_job_stops_its_run_and_the_chains_inside() {
        check(
            "level 6; agent a; agent c carried=true; node n1; start r1 steps=2; job j1 agent=c; carry j1 run=1; advance r1 agent=c; start r2 steps=1;
            carry r1/0 run=2; advance r2 agent=a; grant r2/0 n1 -- cancel j1; show r2; fail r2/0",
            expect![[r#"
                j1 Ended running→cancelled
                r1 ended cancelled step 0: Chain execution was cancelled
                r1/0 Ended running→cancelled
                r2 ended cancelled step 0: Chain execution was cancelled
                r2/0 Cancelling running→running Cancelling
                r2: cancelled version 3 of 1 steps ["a None"] Chain execution was cancelled
                r2/0 Ended running→cancelled
            "#]],
        );
        check(
            "level 6; agent a; agent c carried=true; node n1; start r1 steps=2; job j1 agent=c; carry j1 run=1; advance r1 agent=c; start r2 steps=1;
            carry r1/0 run=2; advance r2 agent=a; grant r2/0 n1 -- complete r2/0; advance r1 fail=no; end-run j1 error=late; show r1",
            expect![[r#"
                r2/0 Ended running→completed
                r2 ended completed step 0
                r1/0 Ended running→completed
                r1 step_ended running step 0
                r1 ended failed step 0: no
                j1 Ended running→failed Agent: no
                ! the run does not carry this job
                r1: failed version 4 of 2 steps ["c Some({})"] no
            "#]],
        );
    }

    #[test]
    fn what_must_be_an_artifact_is_refused() {
        let long = "x".repeat(65_537);
        check(
            &format!(
                "level 6; agent a carried=true; job j1; carry j1 run=7 -- end-run j1 output={long}; end-run j1 error=no output={long};
                end-run j1 metadata={long}; end-run j1 metadata=m"
            ),
            expect![[r#"
                ! a payload of 65537 bytes is too large to be inline
                ! a payload of 65537 bytes is too large to be inline
                ! a payload of 65537 bytes is too large to be inline
                j1 Ended running→completed
            "#]],
        );
    }

    #[test]
    fn its_execution_is_the_time_that_it_was_carried() {
        let mut run = Run::new();
        run.prepare("level 6; agent a carried=true; job j1 timeout=9; carry j1 run=7");
        let due = run.state.next_due().expect("it runs");
        assert_eq!(due.since(run.state.clock()), atlas_types::Micros::from_secs(9), "nobody else enforces its limit");
        run.prepare("clock +5; end-run j1");
        let job = run.state.job(run.job_id("j1")).expect("it is there");
        assert_eq!((job.execution.0, job.attempt.0, job.carrier()), (5_000_000, 0, None));
        assert!(job.carried.is_some_and(|carried| carried.run.0 == 7), "an ended job shows its run");
        assert_eq!(run.state.next_due(), None);
    }
}
