//! Deletes a retired agent version. Jobs that have ended keep their text and the reference to its package.

use std::sync::Arc;

use atlas_types::{DeleteAgent, Outcome, Rejection};

use crate::change::Change;

pub(super) fn apply(command: &DeleteAgent, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let (namespace, state) = (&change.origin.namespace, &change.state);
    let found = state.agent(namespace, &command.name, command.version);
    let agent = Arc::clone(found.ok_or(Rejection::UnknownAgent)?);
    if !agent.retired {
        return Err(Rejection::AgentInService);
    }
    let jobs = state.active_of(namespace, &command.name, command.version);
    if jobs > 0 {
        return Err(Rejection::AgentInUse { jobs });
    }
    change.remove_agent(agent);
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_retired_version_without_jobs_is_forgotten_and_makes_room() {
        check(
            "level 5; config agents=2; agent a; agent a version=1.1.0; retire a --
            agent b; delete a; delete a; agent b; agent a; delete a version=1.1.0; delete c; delete a version=1.1.0 ns=other",
            expect![[r#"
                ! the cluster's limit of 2 for agent versions is reached
                agent a 1.0.0 deleted
                ! no such agent version
                agent b 1.0.0
                ! the cluster's limit of 2 for agent versions is reached
                ! the agent version is not retired
                ! no such agent version
                ! no such agent version
            "#]],
        );
    }

    #[test]
    fn a_version_is_kept_while_jobs_wait_run_or_are_in_back_off() {
        check(
            "level 5; agent a retries=1; node n1; job j1; retire a -- delete a; grant j1 n1; delete a; fail j1; delete a;
            cancel j1'1; show j1; delete a; show j1; retry j1 j2; show j2",
            expect![[r#"
                ! the agent version has 1 job that has not ended
                j1 Granted pending→running on n1 token 1 attempt 1
                ! the agent version has 1 job that has not ended
                j1 Ended running→failed Agent: boom
                j1'1 Submitted pending→pending Backoff { until: ClusterTime(2000000) }
                ! the agent version has 1 job that has not ended
                j1'1 Ended pending→cancelled
                j1: failed attempt 1
                agent a 1.0.0 deleted
                j1: failed attempt 1
                j2 Submitted pending→pending Queued
                j2: pending Queued attempt 0
            "#]],
        );
    }

    #[test]
    fn a_deleted_version_can_be_published_again() {
        check(
            "level 5; agent a; retire a; delete a -- job j1; agent a; job j2; delete a",
            expect![[r#"
            ! the agent version is no longer registered with this package
            agent a 1.0.0
            j2 Submitted pending→pending Queued
            ! the agent version is not retired
        "#]],
        );
    }
}
