//! Fails a waiting job: no node can run it, or it waited too long. Jobs in doubt are excluded, because their retry rule
//! would run them again without a decision, and parked ones, which wait for no node.

use atlas_types::{FailPending, FailureKind, JobStatus, Outcome, Reason, Rejection};

use crate::change::Change;
use crate::index::{TimerKind, job_timer};

pub(super) fn apply(command: &FailPending, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.job(command.job)?;
    if job.status != JobStatus::Pending || matches!(job.reason, Reason::InDoubt | Reason::Parked) {
        return Err(Rejection::WrongStatus { status: job.status });
    }
    if command.failure.kind == FailureKind::QueueTimeout {
        let timer = job_timer(job).filter(|(_, kind)| *kind == TimerKind::QueueTimeout);
        if timer.is_none_or(|(due, _)| due > change.clock) {
            return Err(Rejection::NotDue);
        }
    }
    let job = (**job).clone();
    Ok(change.fail_without_run(job, command.failure.clone()))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn clients_see_it_run_and_fail() {
        check(
            "agent a; job j1 -- fail-pending j1 kind=unsatisfiable error=no-such-gpu; show j1",
            expect![[r#"
            j1 Granted pending→running without a lease
            j1 Ended running→failed Unsatisfiable: no-such-gpu
            j1: failed attempt 0
        "#]],
        );
    }

    #[test]
    fn a_queue_timeout_must_have_come() {
        check(
            "agent a queue=10; job j1 -- fail-pending j1 kind=queue-timeout; clock +10; fail-pending j1 kind=queue-timeout",
            expect![[r#"
                ! the job is not due yet
                j1 Granted pending→running without a lease
                j1 Ended running→failed QueueTimeout: boom
            "#]],
        );
    }

    #[test]
    fn a_job_that_was_granted_once_has_no_queue_timeout() {
        check(
            "agent a queue=10; node n1; job j1; grant j1 n1; lose j1; clock +10 -- fail-pending j1 kind=queue-timeout",
            expect![[r#"
                ! the job is not due yet
            "#]],
        );
    }

    #[test]
    fn only_a_waiting_job_is_failed() {
        check(
            "agent a effects=once; node n1; job j1; job j2; grant j1 n1; grant j2 n1; start j2; lose j2 --
            fail-pending j1; fail-pending j2; fail-pending j9",
            expect![[r#"
                ! the job is Running
                ! the job is Pending
                ! no such job: ?
            "#]],
        );
    }
}
