//! Replaces the replicated configuration. Lower limits apply to new objects; existing ones stay, except remembered requests.

use std::sync::Arc;

use atlas_types::{ConfigureCluster, Event, Outcome, Rejection};

use crate::change::Change;

pub(super) fn apply(command: &ConfigureCluster, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let config = Arc::new(command.config.clone());
    change.state.config = Arc::clone(&config);
    let level = change.state.level;
    change.state.dedupe.trim(command.config.dedupe_max, level);
    change.emit(Event::Configured { config });
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn lower_limits_refuse_what_comes_and_keep_what_is_there() {
        check(
            "agent a; job j1; job j2 -- config active=1; job j3; cancel j1; job j3; cancel j2; job j3",
            expect![[r#"
                configured
                ! Queue is full (2 jobs). Wait for jobs to complete or increase max_size.
                j1 Ended pending→cancelled
                ! Queue is full (1 jobs). Wait for jobs to complete or increase max_size.
                j2 Ended pending→cancelled
                j3 Submitted pending→pending Queued
            "#]],
        );
    }
}
