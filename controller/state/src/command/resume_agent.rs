//! An operator closes the circuit of an agent version: its jobs start as usual again.

use std::sync::Arc;

use atlas_types::{AgentVersion, Circuit, Outcome, Rejection, ResumeAgent};

use crate::change::Change;

pub(super) fn apply(command: &ResumeAgent, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let found = change.state.agent(&change.origin.namespace, &command.name, command.version);
    let agent = Arc::clone(found.ok_or(Rejection::UnknownAgent)?);
    let new = Arc::new(AgentVersion { circuit: Circuit::default(), ..(*agent).clone() });
    match agent.circuit.open {
        Some(_) => change.put_agent(new),
        None => change.state.store_agent(&new),
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn an_operator_closes_the_circuit_of_a_version() {
        check(
            "level 6; agent a failures=1; node n1; job j1; job j2; grant j1 n1; fail j1 -- grant j2 n1; resume-agent a; resume-agent a;
            grant j2 n1; fail j2; resume-agent a version=2.0.0",
            expect![[r#"
                ! the job is not due yet
                agent a 1.0.0
                j2 Granted pending→running on n1 token 2 attempt 1
                agent a 1.0.0 circuit open after 1 failures
                j2 Ended running→failed Agent: boom
                ! no such agent version
            "#]],
        );
    }
}
