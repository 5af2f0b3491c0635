//! Retires an agent version. It accepts no new jobs; jobs pinned to it finish.

use std::sync::Arc;

use atlas_types::{AgentVersion, Outcome, Rejection, RetireAgent, level};

use crate::change::Change;

pub(super) fn apply(command: &RetireAgent, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let found = change.state.agent(&change.origin.namespace, &command.name, command.version);
    let agent = Arc::clone(found.ok_or(Rejection::UnknownAgent)?);
    let notes = change.state.level >= level::RETIREMENT_TIMES;
    if !agent.retired || notes && agent.retired_at.is_none() {
        let retired_at = notes.then_some(change.clock);
        change.put_agent(Arc::new(AgentVersion { retired: true, retired_at, ..(*agent).clone() }));
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_retired_version_takes_no_new_jobs_and_finishes_those_it_has() {
        check(
            "agent a; node n1; job j1 -- retire a; retire a; job j2; grant j1 n1; complete j1",
            expect![[r#"
            agent a 1.0.0 retired
            ! the agent version is no longer registered with this package
            j1 Granted pending→running on n1 token 1 attempt 1
            j1 Ended running→completed
        "#]],
        );
    }

    #[test]
    fn an_unknown_version_is_refused() {
        check(
            "agent a -- retire a version=2.0.0; retire b; retire a ns=other",
            expect![[r#"
            ! no such agent version
            ! no such agent version
            ! no such agent version
        "#]],
        );
    }
}
