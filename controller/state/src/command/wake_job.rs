//! Puts a job whose backoff or delay has passed into the queue.

use atlas_types::{JobChange, JobStatus, Outcome, Reason, Rejection, WakeJob};

use crate::change::Change;

pub(super) fn apply(command: &WakeJob, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.job(command.job)?;
    let (Reason::Backoff { until } | Reason::Delayed { until }) = job.reason else {
        return Err(Rejection::WrongStatus { status: job.status });
    };
    if job.status != JobStatus::Pending {
        return Err(Rejection::WrongStatus { status: job.status });
    }
    if until > change.clock {
        return Err(Rejection::NotDue);
    }
    let mut job = (**job).clone();
    job.reason = Reason::Queued;
    job.queued_at = change.clock;
    change.put(job, JobChange::Woken, JobStatus::Pending);
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
