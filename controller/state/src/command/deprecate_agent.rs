//! Marks an agent version as deprecated, or removes the mark. It still accepts jobs.

use std::sync::Arc;

use atlas_types::{AgentVersion, DeprecateAgent, Outcome, Rejection};

use super::check_size;
use crate::change::Change;

pub(super) fn apply(command: &DeprecateAgent, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let found = change.state.agent(&change.origin.namespace, &command.name, command.version);
    let agent = Arc::clone(found.ok_or(Rejection::UnknownAgent)?);
    check_size(command.why.as_ref().map_or(0, |why| why.len() as u64))?;
    if agent.deprecated != command.why {
        change.put_agent(Arc::new(AgentVersion { deprecated: command.why.clone(), ..(*agent).clone() }));
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_deprecated_version_takes_jobs_until_it_is_retired() {
        check(
            "agent a; node n1 -- deprecate a why=old; deprecate a why=old; job j1; deprecate a; retire a",
            expect![[r#"
            agent a 1.0.0 deprecated: old
            j1 Submitted pending→pending Queued
            agent a 1.0.0
            agent a 1.0.0 retired
        "#]],
        );
    }

    #[test]
    fn the_mark_stays_with_a_version_that_is_published_again() {
        check(
            "agent a; deprecate a why=old -- agent a; agent a digest=2",
            expect![[r#"
            agent a 1.0.0
        "#]],
        );
    }

    #[test]
    fn an_unknown_version_is_refused() {
        check(
            "agent a -- deprecate a version=2.0.0 why=x; deprecate b why=x",
            expect![[r#"
            ! no such agent version
            ! no such agent version
        "#]],
        );
    }
}
