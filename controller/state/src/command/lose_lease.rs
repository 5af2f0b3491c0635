//! One lease is lost although its node lives: the node reports that it does not have it, or does not report it.

use std::sync::Arc;

use atlas_types::{LoseLease, Outcome, Rejection};

use crate::change::{Change, live_lease};

pub(super) fn apply(command: &LoseLease, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.state.jobs.get(command.job);
    let (job, _) = live_lease(job, |lease| lease.token == command.token)?;
    let job = Arc::clone(job);
    Ok(change.lose(&job))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn what_may_run_again_does_so_and_keeps_its_place() {
        check(
            "agent a; node n1; job j1; job j2; grant j1 n1 -- lose j1; show j1; show n1",
            expect![[r#"
            j1 Lost running→pending Lost
            j1: pending Lost attempt 1
            n1: places 4 cores any memory any gpus [] warm []
        "#]],
        );
    }

    #[test]
    fn attempts_are_bounded() {
        check(
            "agent a retries=1; node n1; job j1; grant j1 n1; lose j1; grant j1 n1; lose j1; grant j1 n1 -- lose j1; show j1'1",
            expect![[r#"
                j1 Ended running→failed LeaseLost: lease lost 3 times
                j1'1 Submitted pending→pending Backoff { until: ClusterTime(2000000) }
                j1'1: pending back-off 1 s attempt 0
            "#]],
        );
    }

    #[test]
    fn with_one_attempt_a_lost_lease_is_the_end() {
        check(
            "agent a attempts=1; node n1; job j1; grant j1 n1 -- lose j1",
            expect![[r#"
            j1 Ended running→failed LeaseLost: lease lost 1 times
        "#]],
        );
    }

    #[test]
    fn what_must_not_run_twice_is_in_doubt_once_it_started() {
        check(
            "agent a effects=once; node n1; job j1; grant j1 n1 -- lose j1; grant j1 n1; start j1; lose j1; grant j1 n1",
            expect![[r#"
                j1 Lost running→pending Lost
                j1 Granted pending→running on n1 token 2 attempt 2
                j1 Started running→running Running
                j1 Lost running→pending InDoubt
                ! the job is Pending
            "#]],
        );
        check(
            "agent a effects=reconcilable attempts=1; node n1; job j1; grant j1 n1; start j1 -- lose j1; cancel j1",
            expect![[r#"
                j1 Lost running→pending InDoubt
                j1 Ended pending→cancelled
            "#]],
        );
        check(
            "agent a effects=pure; node n1; job j1; grant j1 n1; start j1 -- lose j1",
            expect![[r#"
            j1 Lost running→pending Lost
        "#]],
        );
    }

    #[test]
    fn an_outdated_lease_is_fenced() {
        check(
            "agent a; node n1; job j1; grant j1 n1; lose j1; grant j1 n1 -- lose j1 token=1; lose j9",
            expect![[r#"
            ! the lease is outdated
            ! the lease is outdated
        "#]],
        );
    }
}
