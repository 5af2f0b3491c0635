//! A parent waits no longer for a child: the child, what follows it and what they spawned are cancelled.
//!
//! The parent runs on at once. Where its child still has the place that it lent, the node owes one until the child has stopped.

use atlas_types::{ForsakeChild, Outcome, Rejection};

use crate::change::{Change, live_lease};

pub(super) fn apply(command: &ForsakeChild, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let spawner = command.spawner;
    let parent = change.state.jobs.get(spawner.job);
    live_lease(parent, |lease| lease.token == spawner.token && lease.node == command.node)?;
    let mut child = change.job(command.child)?;
    if child.spawned.is_none_or(|spawned| spawned.by != spawner.job) {
        return Err(Rejection::UnknownJob { job: command.child });
    }
    while let Some(next) = child.successor.and_then(|next| change.state.jobs.get(next)) {
        child = next;
    }
    let accepted = !child.status.is_terminal();
    if accepted {
        let child = (**child).clone();
        change.forsake(child);
    }
    Ok(Outcome::Cancelled { accepted })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_parent_that_gives_up_runs_on_and_its_child_is_cancelled() {
        check(
            "agent a spawns=true; node n1 places=1; job j1; grant j1 n1; spawn j1 c1; grant c1 n1 --
            show n1; forsake j1 c1; show n1; job j2; grant j2 n1; fail c1; show n1; grant j2 n1; complete j1; grant j2 n1",
            expect![[r#"
                n1: places 0 cores any memory any gpus [] warm []
                c1 Cancelling running→running Cancelling
                n1: places 0 owed 1 cores any memory any gpus [] warm []
                j2 Submitted pending→pending Queued
                ! the placement does not fit
                c1 Ended running→cancelled
                n1: places 0 cores any memory any gpus [] warm []
                ! the placement does not fit
                j1 Ended running→completed
                j2 Granted pending→running on n1 token 3 attempt 1
            "#]],
        );
    }

    #[test]
    fn a_child_that_waits_ends_at_once_and_so_does_the_retry_that_followed_it() {
        check(
            "agent a spawns=true retries=1; node n1; job j1; grant j1 n1; spawn j1 c1; spawn j1 c2; grant c2 n1; fail c2 --
            forsake j1 c1; forsake j1 c2; forsake j1 c2; show n1",
            expect![[r#"
                c1 Ended pending→cancelled
                c2'1 Ended pending→cancelled
                = nothing to cancel
                n1: places 3 cores any memory any gpus [] warm []
            "#]],
        );
    }

    #[test]
    fn only_the_holder_of_the_lease_gives_up_and_only_its_own_child() {
        check(
            "agent a spawns=true; node n1; job j1; job j2; grant j1 n1; spawn j1 c1 --
            forsake j1 c1 token=9; forsake j1 c1 node=n2; forsake j1 j2; forsake j1 j9; forsake j2 c1",
            expect![[r#"
                ! the lease is outdated
                ! the lease is outdated
                ! no such job: j2
                ! no such job: ?
                ! the lease is outdated
            "#]],
        );
    }
}
