//! An attempt succeeded. A result after an accepted cancel is dropped: the job ends as cancelled.

use std::sync::Arc;

use atlas_types::{CompleteJob, JobStatus, Outcome, Reason, Rejection};

use super::check_report;
use crate::change::{Change, live_lease};

pub(super) fn apply(command: &CompleteJob, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.state.jobs.get(command.job);
    let (job, _) = live_lease(job, |lease| lease.token == command.token && lease.node == command.node)?;
    check_report(Some(&command.output), command.stream.as_ref(), command.metadata.as_ref())?;

    let mut new = (**job).clone();
    if new.reason != Reason::Cancelling {
        new.output = Some(command.output.clone());
    }
    new.stream = command.stream.clone().map(Box::new).or(new.stream);
    if let Some(metadata) = &command.metadata {
        new.metadata = Arc::clone(metadata);
    }
    Ok(change.end_by_report(new, &command.usage, JobStatus::Completed, None))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn the_result_is_that_of_the_attempt_that_holds_the_lease() {
        check(
            "agent a; node n1; job j1; grant j1 n1; lose j1; grant j1 n1 --
            complete j1 token=1 output=1; complete j1 node=n2 output=2; complete j1 output=3; complete j1 output=4; show j1; show n1",
            expect![[r#"
                ! the lease is outdated
                ! the lease is outdated
                j1 Ended running→completed
                ! the lease is outdated
                j1: completed attempt 2 output 3
                n1: places 4 cores any memory any gpus [] warm []
            "#]],
        );
    }

    #[test]
    fn after_a_cancel_the_result_is_dropped() {
        check(
            "agent a; node n1; job j1; grant j1 n1; cancel j1 -- complete j1 output=1; show j1",
            expect![[r#"
            j1 Ended running→cancelled
            j1: cancelled attempt 1
        "#]],
        );
    }

    #[test]
    fn an_output_that_must_be_an_artifact_is_refused() {
        check(
            "agent a; node n1; job j1; grant j1 n1 -- complete j1 bytes=65537; complete j1 bytes=65536",
            expect![[r#"
                ! a payload of 65537 bytes is too large to be inline
                j1 Ended running→completed
            "#]],
        );
    }
}
