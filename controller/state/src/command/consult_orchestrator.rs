//! Starts a job of the cluster itself, in which an orchestrator is called. It is in a namespace of its own, is never routed, and takes a
//! place of the kind that no process of a client's job takes, so that a full cluster still decides.

use std::sync::Arc;

use atlas_types::{
    AgentKind, ConsultOrchestrator, Demand, Effects, Job, Namespace, Outcome, Place, Rejection, RetryRule, RunSpec,
    SubmitJob, Timeouts, Verdict,
};

use super::submit_job::{check_id, check_room, new_job};
use super::{check_limit, check_size};
use crate::change::Change;

/// Most such jobs that have not ended.
const SYSTEM_JOBS_MAX: u64 = 256;

/// Leases that such a job may have: what it does is asked again if it ends otherwise.
const ATTEMPTS_MAX: u32 = 2;

pub(super) fn apply(command: &ConsultOrchestrator, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let bytes = command.input.inline_bytes();
    check_size(bytes)?;
    check_id(change, command.id)?;
    check_limit("calls of orchestrators", change.state.system_jobs(), SYSTEM_JOBS_MAX)?;
    check_room(change, bytes, &Default::default())?;
    let found = change.state.agent(&change.origin.namespace, &command.agent, command.pin.version);
    let found = found.filter(|agent| agent.digest == command.pin.digest && !agent.retired);
    let agent = found.filter(|agent| agent.kind == AgentKind::Orchestrator).ok_or(Rejection::StaleAgent)?;
    let spec = Arc::new(spec(&agent.spec, command));
    let verdict = Verdict::Accepted(command.pin.clone());
    let submit = SubmitJob {
        execution_timeout: Some(command.timeout),
        ..SubmitJob::new(command.id, command.agent.clone(), verdict, command.input.clone())
    };
    let job = new_job(&submit, change, Some(command.pin.clone()), Some(spec));
    change.submit(Job { namespace: Namespace::system(), ..job });
    Ok(Outcome::Submitted { job: command.id, repeated: false })
}

/// How the job runs: like the orchestrator's contract says, without what only a client's job may do.
fn spec(contract: &RunSpec, command: &ConsultOrchestrator) -> RunSpec {
    RunSpec {
        demand: Demand { place: Place::Llm, ..contract.demand.clone() },
        timeouts: Timeouts { queue: Some(command.timeout), ..contract.timeouts },
        retry: RetryRule { max_retries: 0, ..contract.retry },
        effects: Effects::Idempotent,
        max_attempts: ATTEMPTS_MAX,
        concurrency: None,
        rate: None,
        per_key: None,
        failures_max: None,
        spawns: false,
        carried: false,
        secrets: Vec::new(),
        model: None,
        ..contract.clone()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_call_is_a_job_that_does_not_count() {
        check(
            "level 6; agent r orchestrator=true; agent a; node n1 places=1 llm=1; job j1; grant j1 n1 --
            consult c1 agent=r; grant c1 n1; show n1; config active=1; consult c2 agent=r; complete c1; show c1",
            expect![[r#"
                c1 Submitted pending→pending Queued
                c1 Granted pending→running on n1 token 2 attempt 1
                n1: places 0 llm 0 cores any memory any gpus [] warm []
                configured
                c2 Submitted pending→pending Queued
                c1 Ended running→completed
                c1: completed attempt 1 output {}
            "#]],
        );
    }

    #[test]
    fn only_an_orchestrator_that_is_registered_is_called() {
        check(
            "level 6; agent r orchestrator=true; agent a; node n1 -- consult c1 agent=a; consult c1 agent=b; consult c1 agent=r digest=9;
            retire r; consult c1 agent=r",
            expect![[r#"
                ! the agent version is no longer registered with this package
                ! the agent version is no longer registered with this package
                ! the agent version is no longer registered with this package
                agent r 1.0.0 retired
                ! the agent version is no longer registered with this package
            "#]],
        );
    }

    #[test]
    fn a_call_fails_without_a_retry() {
        check(
            "level 6; agent r orchestrator=true retries=3; node n1 llm=1; consult c1 agent=r; grant c1 n1 -- fail c1; show c1",
            expect![[r#"
                c1 Ended running→failed Agent: boom
                c1: failed attempt 1
            "#]],
        );
    }
}
