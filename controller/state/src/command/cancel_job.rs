//! Cancels a job and the jobs that it spawned: a pending one ends at once, a running one when its worker has stopped it.

use atlas_types::{CancelJob, JobStatus, Outcome, Rejection};

use crate::change::Change;

pub(super) fn apply(command: &CancelJob, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.own_job(command.job)?;
    let accepted = match job.status {
        // One that parked has started, and is not what a caller means who cancels only what has not.
        JobStatus::Pending if command.running || !job.has_parked() => {
            let job = (**job).clone();
            change.end(job, JobStatus::Cancelled, None);
            true
        }
        JobStatus::Running if command.running => {
            let job = (**job).clone();
            change.cancel(job);
            true
        }
        JobStatus::Pending | JobStatus::Running | JobStatus::Completed | JobStatus::Failed | JobStatus::Cancelled => {
            false
        }
    };
    Ok(Outcome::Cancelled { accepted })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_waiting_job_ends_at_once() {
        check(
            "agent a; job j1; job j2 -- cancel j1; cancel-pending j2; cancel j1",
            expect![[r#"
            j1 Ended pending→cancelled
            j2 Ended pending→cancelled
            = nothing to cancel
        "#]],
        );
    }

    #[test]
    fn a_running_job_ends_when_it_has_stopped() {
        check(
            "agent a; node n1; job j1; grant j1 n1 -- cancel-pending j1; cancel j1; cancel j1; show n1; fail j1; show n1",
            expect![[r#"
                = nothing to cancel
                j1 Cancelling running→running Cancelling
                n1: places 3 cores any memory any gpus [] warm []
                j1 Ended running→cancelled
                n1: places 4 cores any memory any gpus [] warm []
            "#]],
        );
    }

    #[test]
    fn a_cancelled_job_whose_lease_is_lost_does_not_run_again() {
        check(
            "agent a; node n1; job j1; grant j1 n1; cancel j1 -- lose-node n1",
            expect![[r#"
            node n1 epoch 1 Down
            j1 Ended running→cancelled
        "#]],
        );
    }

    #[test]
    fn a_job_of_another_name_space_does_not_exist() {
        check(
            "agent a; job j1 -- cancel j1 ns=other; cancel j9",
            expect![[r#"
            ! no such job: j1
            ! no such job: ?
        "#]],
        );
    }
}
