//! Resolves a job in doubt: its worker was lost after the start, and only a person, or the agent's reconcile
//! call, can tell what the attempt did (B.7).

use std::sync::Arc;

use atlas_types::{Failure, FailureKind, JobChange, JobStatus, Outcome, Reason, Rejection, Resolution, ResolveJob};

use super::check_report;
use crate::change::Change;

pub(super) fn apply(command: &ResolveJob, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.own_job(command.job)?;
    if job.status != JobStatus::Pending || job.reason != Reason::InDoubt {
        return Err(Rejection::NotInDoubt { status: job.status });
    }
    let mut job = (**job).clone();
    match &command.resolution {
        Resolution::RunAgain => {
            job.reason = Reason::Lost;
            change.put(job, JobChange::Resolved, JobStatus::Pending);
            Ok(Outcome::Ended { status: JobStatus::Pending, retry: None })
        }
        Resolution::Completed(output) => {
            check_report(Some(output), None, None)?;
            job.output = Some(output.clone());
            Ok(change.end_in_doubt(job, JobStatus::Completed, None))
        }
        Resolution::Failed(error) => {
            let failure = Failure { kind: FailureKind::LeaseLost, error: Arc::clone(error) };
            Ok(change.end_in_doubt(job, JobStatus::Failed, Some(failure)))
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    const IN_DOUBT: &str =
        "agent a effects=once attempts=1 retries=2; node n1; job j1; grant j1 n1; start j1; lose j1 --";

    #[test]
    fn a_job_that_may_run_again_waits_for_its_next_attempt() {
        check(
            &format!("{IN_DOUBT} resolve j1 again; show j1; grant j1 n1; start j1; complete j1 output=1; show j1"),
            expect![[r#"
                j1 Resolved pending→pending Lost
                j1: pending Lost attempt 1
                j1 Granted pending→running on n1 token 2 attempt 2
                j1 Started running→running Running
                j1 Ended running→completed
                j1: completed attempt 2 output 1
            "#]],
        );
    }

    #[test]
    fn a_job_that_did_its_work_is_completed_with_what_came_out() {
        check(
            &format!("{IN_DOUBT} resolve j1 output=7; show j1; resolve j1 again"),
            expect![[r#"
            j1 Granted pending→running without a lease
            j1 Ended running→completed
            j1: completed attempt 1 output 7
            ! the job is not in doubt, it is Completed
        "#]],
        );
    }

    #[test]
    fn a_job_that_is_failed_is_not_retried_unasked() {
        check(
            &format!("{IN_DOUBT} resolve j1 error=nothing-was-sent; show j1"),
            expect![[r#"
            j1 Granted pending→running without a lease
            j1 Ended running→failed LeaseLost: nothing-was-sent
            j1: failed attempt 1
        "#]],
        );
    }

    #[test]
    fn a_job_run_again_may_come_in_doubt_again_and_fails_if_it_never_started() {
        check(
            &format!(
                "{IN_DOUBT} resolve j1 again; grant j1 n1; start j1; lose j1; resolve j1 again; grant j1 n1; lose j1"
            ),
            expect![[r#"
                j1 Resolved pending→pending Lost
                j1 Granted pending→running on n1 token 2 attempt 2
                j1 Started running→running Running
                j1 Lost running→pending InDoubt
                j1 Resolved pending→pending Lost
                j1 Granted pending→running on n1 token 3 attempt 3
                j1 Ended running→failed LeaseLost: lease lost 3 times
                j1'1 Submitted pending→pending Backoff { until: ClusterTime(2000000) }
            "#]],
        );
    }

    #[test]
    fn only_a_job_in_doubt_is_resolved() {
        let long = "x".repeat(65_537);
        check(
            &format!(
                "agent a effects=once; node n1; job j1; job j2; grant j2 n1; start j2; lose j2 --
                resolve j1 again; resolve j2 again ns=other; resolve j9 again; resolve j2 output={long}; grant j1 n1; resolve j1 again"
            ),
            expect![[r#"
                ! the job is not in doubt, it is Pending
                ! no such job: j2
                ! no such job: ?
                ! a payload of 65537 bytes is too large to be inline
                j1 Granted pending→running on n1 token 2 attempt 1
                ! the job is not in doubt, it is Running
            "#]],
        );
    }
}
