//! Commits that an attempt starts. A worker waits for it before it runs a job that must not run twice.

use std::sync::Arc;

use atlas_types::{JobChange, JobStatus, Lease, Outcome, Reason, Rejection, StartJob};

use crate::change::{Change, live_lease};

pub(super) fn apply(command: &StartJob, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.state.jobs.get(command.job);
    let (job, lease) = live_lease(job, |lease| lease.token == command.token && lease.node == command.node)?;
    if lease.started {
        return Ok(Outcome::Done);
    }

    let mut new = (**job).clone();
    // Cancelled before it started: nothing has run yet, so nothing has to be stopped.
    if job.reason == Reason::Cancelling {
        return Ok(change.end(new, JobStatus::Cancelled, None));
    }
    new.lease = Some(Arc::new(Lease { started: true, ..(**lease).clone() }));
    change.put(new, JobChange::Started, JobStatus::Running);
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_start_is_committed_once() {
        check(
            "agent a; node n1; job j1; grant j1 n1 -- start j1; start j1",
            expect![[r#"
            j1 Started running→running Running
        "#]],
        );
    }

    #[test]
    fn an_outdated_lease_is_fenced() {
        check(
            "agent a; node n1; job j1; grant j1 n1; lose j1; grant j1 n1 -- start j1 token=1; start j1 node=n2; start j9",
            expect![[r#"
                ! the lease is outdated
                ! the lease is outdated
                ! the lease is outdated
            "#]],
        );
    }

    #[test]
    fn a_job_cancelled_before_its_start_ends_at_once() {
        check(
            "agent a effects=once; node n1; job j1; grant j1 n1; cancel j1 -- start j1; show n1",
            expect![[r#"
            j1 Ended running→cancelled
            n1: places 4 cores any memory any gpus [] warm []
        "#]],
        );
    }
}
