//! Puts a job into the queue whose backoff or delay has passed, or for which a time has come while it was parked.

use atlas_types::{JobStatus, Outcome, Rejection, WakeJob};

use crate::change::Change;
use crate::index::{TimerKind, job_timer};

pub(super) fn apply(command: &WakeJob, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.job(command.job)?;
    let timer = job_timer(job).filter(|(_, kind)| *kind == TimerKind::Wake);
    let Some((due, _)) = timer.filter(|_| job.status == JobStatus::Pending) else {
        return Err(Rejection::WrongStatus { status: job.status });
    };
    if due > change.clock {
        return Err(Rejection::NotDue);
    }
    let job = (**job).clone();
    change.wake(job);
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_back_off_ends_when_its_time_has_come() {
        check(
            "agent a retries=1 backoff=5; node n1; job j1; grant j1 n1; fail j1 --
            clock +4; wake j1'1; clock +1; wake j1'1; wake j1'1; grant j1'1 n1; wake j1'1",
            expect![[r#"
                ! the job is not due yet
                j1'1 Woken pending→pending Queued
                ! the job is Pending
                j1'1 Granted pending→running on n1 token 2 attempt 1
                ! the job is Running
            "#]],
        );
    }

    #[test]
    fn a_cancelled_retry_does_not_wake() {
        check(
            "agent a retries=1; node n1; job j1; grant j1 n1; fail j1; cancel j1'1; clock +9 -- wake j1'1; wake j9",
            expect![[r#"
                ! the job is Cancelled
                ! no such job: ?
            "#]],
        );
    }
}
