//! A parent no longer waits for a child: the child, its retries and their children are cancelled.
//!
//! The parent resumes at once. If its child still uses the lent place, the node owes one until the child has stopped.

use std::sync::Arc;

use atlas_types::{ForsakeChild, Job, Outcome, Rejection, level};

use crate::change::{Change, live_lease};
use crate::state::State;

pub(super) fn apply(command: &ForsakeChild, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let spawner = command.spawner;
    let parent = change.state.jobs.get(spawner.job);
    live_lease(parent, |lease| lease.token == spawner.token && lease.node == command.node)?;
    let mut child = match change.job(command.child) {
        Ok(child) => child,
        Err(gone) => retry_of_gone(change.state, command).ok_or(gone)?,
    };
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

/// The last retry of a child that was pruned when it had failed.
fn retry_of_gone<'a>(state: &'a State, command: &ForsakeChild) -> Option<&'a Arc<Job>> {
    if state.level < level::FORSAKEN_RETRIES {
        return None;
    }
    state.children(command.spawner.job).filter(|job| job.original == Some(command.child)).last()
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
    fn the_retry_of_a_child_that_left_the_state_is_found() {
        let script = "agent a spawns=true retries=1; node n1; job j1; grant j1 n1; spawn j1 c1; grant c1 n1; fail c1;
            spawn j1 c2; ack m1; prune --
            show c1; forsake j1 c1; forsake j1 c1; forsake j1 c3; show n1; cancel c2";
        check(
            &format!("level 5; {script}"),
            expect![[r#"
                c1: gone
                c1'1 Ended pending→cancelled
                = nothing to cancel
                ! no such job: ?
                n1: places 3 cores any memory any gpus [] warm []
                c2 Ended pending→cancelled
            "#]],
        );
        check(
            script,
            expect![[r#"
                c1: gone
                ! no such job: c1
                ! no such job: c1
                ! no such job: ?
                n1: places 3 cores any memory any gpus [] warm []
                c2 Ended pending→cancelled
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
