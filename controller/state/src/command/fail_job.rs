//! An attempt failed, or was stopped after a cancel.

use std::sync::Arc;

use atlas_types::{FailJob, JobStatus, Outcome, Reason, Rejection};

use super::check_report;
use crate::change::{Change, live_lease};

pub(super) fn apply(command: &FailJob, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.state.jobs.get(command.job);
    let (job, _) = live_lease(job, |lease| lease.token == command.token && lease.node == command.node)?;
    check_report(command.output.as_ref(), command.stream.as_ref(), command.metadata.as_ref())?;

    let mut new = (**job).clone();
    if new.reason != Reason::Cancelling {
        new.output.clone_from(&command.output);
    }
    new.stream = command.stream.clone().map(Box::new).or(new.stream);
    if let Some(metadata) = &command.metadata {
        new.metadata = Arc::clone(metadata);
    }
    Ok(change.end_by_report(new, &command.usage, JobStatus::Failed, Some(command.failure.clone())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use atlas_types::{JobId, RetryRule};
    use expect_test::expect;

    use crate::State;
    use crate::tests::check;
    use crate::tests::script::Run;

    #[test]
    fn a_failure_is_final_and_its_retry_a_new_job() {
        check(
            "agent a retries=2 backoff=10; node n1; job j1; grant j1 n1 --
            fail j1 output=1; show j1; show j1'1; clock +10; wake j1'1; grant j1'1 n1; fail j1'1; show j1'2;
            clock +20; wake j1'2; grant j1'2 n1; fail j1'2",
            expect![[r#"
                j1 Ended running→failed Agent: boom
                j1'1 Submitted pending→pending Backoff { until: ClusterTime(11000000) }
                j1: failed attempt 1 output 1
                j1'1: pending back-off 10 s attempt 0
                j1'1 Woken pending→pending Queued
                j1'1 Granted pending→running on n1 token 2 attempt 1
                j1'1 Ended running→failed Agent: boom
                j1'2 Submitted pending→pending Backoff { until: ClusterTime(31000000) }
                j1'2: pending back-off 20 s attempt 0
                j1'2 Woken pending→pending Queued
                j1'2 Granted pending→running on n1 token 3 attempt 1
                j1'2 Ended running→failed Agent: boom
            "#]],
        );
    }

    #[test]
    fn an_outdated_lease_is_fenced() {
        check(
            "agent a; node n1; job j1; grant j1 n1 -- fail j1 token=9; fail j1 node=n2; fail j9; fail j1; fail j1 token=1",
            expect![[r#"
                ! the lease is outdated
                ! the lease is outdated
                ! the lease is outdated
                j1 Ended running→failed Agent: boom
                ! the lease is outdated
            "#]],
        );
    }

    #[test]
    fn after_a_cancel_a_failure_only_says_that_it_stopped() {
        check(
            "agent a retries=1; node n1; job j1; grant j1 n1; cancel j1 -- fail j1; show n1",
            expect![[r#"
            j1 Ended running→cancelled
            n1: places 4 cores any memory any gpus [] warm []
        "#]],
        );
    }

    #[test]
    fn an_output_that_must_be_an_artifact_is_refused() {
        let long = "x".repeat(65_537);
        check(
            &format!("agent a; node n1; job j1; grant j1 n1 -- fail j1 output={long}"),
            expect![[r#"
            ! a payload of 65537 bytes is too large to be inline
        "#]],
        );
    }

    #[test]
    fn what_would_come_again_is_retried_unless_the_cluster_is_told_otherwise() {
        check(
            "agent a retries=9; node n1; job j1; job j2; job j3; grant j1 n1; grant j2 n1; grant j3 n1 --
            fail j1 kind=output; config deterministic=false; fail j2 kind=output; fail j3; job j4 refused=yes kind=input;
            job j5 refused=yes kind=dependency; job j6 refused=yes kind=rejected",
            expect![[r#"
                j1 Ended running→failed OutputInvalid: boom
                j1'1 Submitted pending→pending Backoff { until: ClusterTime(2000000) }
                configured
                j2 Ended running→failed OutputInvalid: boom
                j3 Ended running→failed Agent: boom
                j3'1 Submitted pending→pending Backoff { until: ClusterTime(2000000) }
                j4 Submitted pending→pending Queued
                j4 Granted pending→running without a lease
                j4 Ended running→failed InputInvalid: boom
                j5 Submitted pending→pending Queued
                j5 Granted pending→running without a lease
                j5 Ended running→failed Dependency: boom
                j6 Submitted pending→pending Queued
                j6 Granted pending→running without a lease
                j6 Ended running→failed Rejected: boom
            "#]],
        );
    }

    #[test]
    fn a_back_off_has_the_clusters_bound() {
        check(
            "agent a retries=9 backoff=100; config backoff=3; node n1; job j1; grant j1 n1 -- fail j1; clock +3; wake j1'1",
            expect![[r#"
                j1 Ended running→failed Agent: boom
                j1'1 Submitted pending→pending Backoff { until: ClusterTime(4000000) }
                j1'1 Woken pending→pending Queued
            "#]],
        );
    }

    #[test]
    fn a_family_has_a_bounded_number_of_retries_and_a_pause_before_each() {
        let script = "agent a retries=4000000000 backoff=0; node n1; job j1; grant j1 n1 -- fail j1";
        check(
            &format!("level 5; {script}; wake j1'1; clock +1; wake j1'1"),
            expect![[r#"
                j1 Ended running→failed Agent: boom
                j1'1 Submitted pending→pending Backoff { until: ClusterTime(1100000) }
                ! the job is not due yet
                j1'1 Woken pending→pending Queued
            "#]],
        );
        check(
            &format!("{script}; wake j1'1"),
            expect![[r#"
                j1 Ended running→failed Agent: boom
                j1'1 Submitted pending→pending Backoff { until: ClusterTime(1000000) }
                j1'1 Woken pending→pending Queued
            "#]],
        );
        let mut run = Run::new();
        run.prepare("level 5; agent a retries=4000000000 backoff=0; config backoff=0; node n1; job j1");
        let mut image = run.state.to_image();
        let job = Arc::make_mut(&mut image.jobs[0]);
        (job.retry_count, job.original) = (RetryRule::RETRIES_MAX - 1, Some(JobId(9)));
        run.state = State::from_image(image).expect("a state");
        expect![[r#"
            j1 Granted pending→running on n1 token 1 attempt 1
            j1 Ended running→failed Agent: boom
            '1000 Submitted pending→pending Backoff { until: ClusterTime(1100000) }
            '1000 Woken pending→pending Queued
            '1000 Granted pending→running on n1 token 2 attempt 1
            '1000 Ended running→failed Agent: boom
        "#]]
        .assert_eq(&run.play("grant j1 n1; fail j1; clock +1; wake '1000; grant '1000 n1; fail '1000"));
    }
}
