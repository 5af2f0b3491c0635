//! Fails a waiting job: no node can run it, or it waited too long. Jobs in doubt are excluded, because their retry rule
//! would run them again without a decision, and jobs that ever parked: their retry would start without the recorded steps.

use atlas_types::{FailPending, FailureKind, JobStatus, Outcome, Reason, Rejection};

use crate::change::Change;
use crate::index::{TimerKind, job_timer};

pub(super) fn apply(command: &FailPending, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.job(command.job)?;
    if job.status != JobStatus::Pending || job.reason == Reason::InDoubt || job.has_parked() {
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
    fn a_job_that_parked_waits_for_a_node_and_is_not_failed() {
        check(
            "level 6; agent a effects=once retries=1 gpus=1; node n1 gpus=80; job j1; grant j1 n1; start j1; record j1 from=0 steps=s,m;
            park j1 at=5; clock +9; wake j1; lose-node n1; remove n1 --
            fail-pending j1 kind=unsatisfiable; fail-pending j1 kind=dependency; journal j1; node n2 gpus=80; grant j1 n2",
            expect![[r#"
                ! the job is Pending
                ! the job is Pending
                j1: folds [] steps start model of 132 bytes
                node n2 epoch 1 Ready
                = epoch 1
                j1 Granted pending→running on n2 token 2 attempt 2
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
