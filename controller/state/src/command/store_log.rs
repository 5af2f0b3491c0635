//! Stores the log of a running attempt. It replaces the log that was stored before, which it contains.

use atlas_types::{Outcome, Rejection, StoreLog};

use super::check_size;
use crate::change::{Change, live_lease};

pub(super) fn apply(command: &StoreLog, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.state.jobs.get(command.job);
    let (job, _) = live_lease(job, |lease| lease.token == command.token && lease.node == command.node)?;
    check_size(command.stream.inline_bytes())?;

    let mut new = (**job).clone();
    new.stream = Some(Box::new(command.stream.clone()));
    // No event: the event of the job's end carries the log to the histories.
    change.store(new);
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_log_is_stored_by_the_holder_of_the_lease_and_survives_it() {
        check(
            "agent a; node n1; job j1; grant j1 n1 --
            store-log j1 artifact=1; log j1; store-log j1 artifact=2 token=9; store-log j1 artifact=2 node=n2; store-log j9; log j1;
            lose j1; log j1; store-log j1 artifact=3; grant j1 n1; complete j1; log j1",
            expect![[r#"
                j1: log Some(1)
                ! the lease is outdated
                ! the lease is outdated
                ! the lease is outdated
                j1: log Some(1)
                j1 Lost running→pending Lost
                j1: log Some(1)
                ! the lease is outdated
                j1 Granted pending→running on n1 token 2 attempt 2
                j1 Ended running→completed
                j1: log Some(1)
            "#]],
        );
    }
}
