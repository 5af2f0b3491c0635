//! Records what an orchestrator decided about a job, or puts a job whose decision is outdated back to wait for another.
//!
//! A decision holds for the selection under which it was made. Until its first lease, a job whose selection changed is decided on again, as
//! it was asked for; with its first lease the decision holds for the job and all its retries, so no redirect can lead round in a circle.

use std::sync::Arc;

use atlas_types::{
    AgentName, ClusterTime, Decider, Decision, EventSeq, Failure, FailureKind, Job, JobChange, JobStatus, Micros,
    Outcome, Reason, Rejection, Route, RouteAction, RouteJob, RunSpec, Verdict,
};

use super::{check_bytes, check_size, spawn, submit_job};
use crate::change::Change;
use crate::state::State;

pub(super) fn apply(command: &RouteJob, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.job(command.job)?;
    if job.status != JobStatus::Pending {
        return Err(Rejection::WrongStatus { status: job.status });
    }
    let outdated = job.reason == Reason::Queued && change.state.needs_route(job);
    // A job that is due waits on if the selection has no deadline any more.
    let waits = match job.reason {
        Reason::Routing { until } => command.decision.is_some() || until <= change.clock,
        _ => false,
    };
    if change.state.generation(&job.namespace) != command.generation || !(outdated || waits) {
        return Err(Rejection::RouteOutdated);
    }
    let asked = as_asked(change.state, job);
    match &command.decision {
        None => {
            let job = undecided(change.state, asked, change.clock);
            change.put(job, JobChange::Routed, JobStatus::Pending);
        }
        Some(Decision::Execute) => execute(command, change, asked),
        Some(Decision::Reject(reason)) => {
            check_size(reason.len() as u64)?;
            let failure = Failure { kind: FailureKind::Rejected, error: Arc::clone(reason) };
            fail(change, decided(command, asked, RouteAction::Reject), failure);
        }
        Some(Decision::Redirect(agent, verdict)) => redirect(command, change, asked, agent, verdict)?,
    }
    Ok(Outcome::Done)
}

/// A job that waits for the orchestrator of its namespace; none if that is the default one.
pub(super) fn new_route(state: &State, job: Job, refused: Option<Failure>, now: ClusterTime) -> Job {
    let route = Route {
        generation: EventSeq(0),
        action: RouteAction::Undecided,
        decider: Decider::Default,
        priority: None,
        rule: None,
        asked: job.agent.clone(),
        asked_pin: job.pin.clone(),
        refused,
    };
    undecided(state, Job { route: Some(Arc::new(route)), ..job }, now)
}

/// A job that waits for a decision, until the deadline of the selection.
fn undecided(state: &State, job: Job, now: ClusterTime) -> Job {
    let route = route_of(&job);
    let deadline: Option<Micros> = state.routing(&job.namespace).and_then(|routing| routing.spec.deadline());
    let until = deadline.map_or(ClusterTime::END, |deadline| now.plus(deadline));
    let route = Route { generation: EventSeq(0), action: RouteAction::Undecided, priority: None, rule: None, ..route };
    Job { reason: Reason::Routing { until }, route: Some(Arc::new(route)), ..job }
}

/// What is known of what was asked for.
fn route_of(job: &Job) -> Route {
    job.route.as_deref().cloned().unwrap_or_else(|| Route {
        generation: EventSeq(0),
        action: RouteAction::Undecided,
        decider: Decider::Default,
        priority: None,
        rule: None,
        asked: job.agent.clone(),
        asked_pin: job.pin.clone(),
        refused: None,
    })
}

/// The job as it was asked for, before a redirect.
fn as_asked(state: &State, job: &Job) -> Job {
    let mut job = job.clone();
    let Some(route) = job.route.as_deref().filter(|route| route.action == RouteAction::Redirect) else { return job };
    let mut route = route.clone();
    let found = route.asked_pin.as_ref().and_then(|pin| {
        let found = state.agent(&job.namespace, &route.asked, pin.version);
        found.filter(|agent| agent.digest == pin.digest)
    });
    job.spec = found.map(|agent| Arc::clone(&agent.spec));
    if job.spec.is_none() && route.refused.is_none() {
        let error = format!("Pool error: Agent not found or no implementation: {}", route.asked);
        route.refused = Some(Failure { kind: FailureKind::NoAgent, error: error.into() });
    }
    (job.agent, job.pin) = (route.asked.clone(), route.asked_pin.clone());
    job.route = Some(Arc::new(route));
    job
}

/// The job with a decision.
fn decided(command: &RouteJob, job: Job, action: RouteAction) -> Job {
    let route = Route {
        generation: command.generation,
        action,
        decider: command.decider,
        priority: command.priority,
        rule: command.rule.clone(),
        ..route_of(&job)
    };
    Job { route: Some(Arc::new(route)), ..job }
}

fn execute(command: &RouteJob, change: &mut Change<'_>, job: Job) {
    let refused = job.route.as_ref().and_then(|route| route.refused.clone());
    let job = match command.generation {
        EventSeq(0) => Job { route: None, ..job },
        _ => decided(command, job, RouteAction::Execute),
    };
    match refused {
        Some(failure) => fail(change, job, failure),
        None => queue(change, job),
    }
}

fn redirect(
    command: &RouteJob,
    change: &mut Change<'_>,
    job: Job,
    agent: &AgentName,
    verdict: &Verdict,
) -> Result<(), Rejection> {
    let spec = |pin: &atlas_types::AgentPin| -> Option<Arc<RunSpec>> {
        let found = change.state.agent(&job.namespace, agent, pin.version)?;
        (found.digest == pin.digest && !found.retired).then(|| Arc::clone(&found.spec))
    };
    let asks = submit_job::asks(verdict)?;
    check_bytes(change.state, asks.iter().map(|ask| ask.ask.bytes()).sum(), 0)?;
    let (pin, spec, failure) = match verdict {
        Verdict::Accepted(pin) | Verdict::Asked { pin, .. } => {
            (Some(pin.clone()), Some(spec(pin).ok_or(Rejection::StaleAgent)?), None)
        }
        Verdict::Refused { pin, failure } => (pin.clone(), pin.as_ref().and_then(spec), Some(failure.clone())),
    };
    let held = || {
        let (spawned, spec) = (job.spawned?, spec.as_ref().filter(|spec| !spec.carried)?);
        let held = spawn::check_hardware(change, spawned.by, &spec.demand).err()?;
        Some(Failure { kind: FailureKind::Unsatisfiable, error: held.to_string().into() })
    };
    let failure = failure.or_else(held);
    let job = decided(command, job, RouteAction::Redirect);
    let job = Job { agent: agent.clone(), pin, spec, ..job };
    let job = if asks.is_empty() { job } else { change.unapproved(job, asks, None) };
    match failure {
        // One that was to be asked about stays without its approval, so that nothing runs it again by itself.
        Some(failure) => fail(change, job, failure),
        None if asks.is_empty() => queue(change, job),
        None => {
            let id = job.id;
            change.put(job, JobChange::Routed, JobStatus::Pending);
            submit_job::ask(change, id, asks);
        }
    }
    Ok(())
}

fn queue(change: &mut Change<'_>, mut job: Job) {
    job.reason = Reason::Queued;
    change.put(job, JobChange::Routed, JobStatus::Pending);
}

/// Fails a job that never ran. It is not seen as decided before, so that clients see pending → running → failed.
fn fail(change: &mut Change<'_>, mut job: Job, failure: Failure) {
    if let Some(priority) = job.route.as_ref().and_then(|route| route.priority) {
        job.priority = priority;
    }
    change.fail_without_run(job, failure);
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    const START: &str = r#"level 6; agent a; agent b; node n1; put routing default {"orchestrator":"r"}"#;

    fn routed(script: &str, expected: expect_test::Expect) {
        check(&format!("{START}; {script}"), expected);
    }

    #[test]
    fn with_the_default_orchestrator_no_job_waits_for_a_decision() {
        check(
            r#"level 6; agent a; node n1; put routing default {"shadow":"r"} -- job j1; route j1 execute; grant j1 n1; show j1"#,
            expect![[r#"
                j1 Submitted pending→pending Queued
                ! the routing decision about the job is outdated
                j1 Granted pending→running on n1 token 1 attempt 1
                j1: running Running attempt 1
            "#]],
        );
    }

    #[test]
    fn a_job_waits_for_the_decision_and_then_for_its_turn() {
        routed(
            "job j1 -- show j1; grant j1 n1; route j1 execute priority=5; show j1; grant j1 n1; show j1; route j1 execute",
            expect![[r#"
                j1: pending Routing { until: ClusterTime(11000000) } attempt 0 undecided under 0 as a priority 0
                ! the routing decision about the job is outdated
                j1 Routed pending→pending Queued
                j1: pending Queued attempt 0 execute under 4 as a priority 0
                j1 Granted pending→running on n1 token 1 attempt 1
                j1: running Running attempt 1 execute under 4 as a priority 5
                ! the job is Running
            "#]],
        );
    }

    #[test]
    fn a_rejected_job_is_seen_to_run_and_fail() {
        routed(
            "job j1; job j2 refused=input -- route j1 reject=no priority=3; show j1; route j2 reject=no; show j2",
            expect![[r#"
                j1 Granted pending→running without a lease
                j1 Ended running→failed Rejected: no
                j1: failed attempt 0 reject under 4 as a priority 3
                j2 Granted pending→running without a lease
                j2 Ended running→failed Rejected: no
                j2: failed attempt 0 reject under 4 as a priority 0
            "#]],
        );
    }

    #[test]
    fn what_the_door_found_wrong_counts_if_the_job_is_allowed() {
        routed(
            "job j1 refused=input error=bad; job j2 refused=unknown agent=c error=none; job j3 refused=unknown agent=c -- show j2;
            route j1 execute; route j2 execute; route j3 redirect=b; show j3; grant j3 n1; show j3",
            expect![[r#"
                j2: pending Routing { until: ClusterTime(11000000) } attempt 0 undecided under 0 as c priority 0
                j1 Granted pending→running without a lease
                j1 Ended running→failed Agent: bad
                j2 Granted pending→running without a lease
                j2 Ended running→failed Agent: none
                j3 Routed pending→pending Queued
                j3: pending Queued attempt 0 redirect under 4 as b priority 0
                j3 Granted pending→running on n1 token 1 attempt 1
                j3: running Running attempt 1 redirect under 4 as b priority 0
            "#]],
        );
    }

    #[test]
    fn a_redirected_job_runs_another_agent() {
        routed(
            "job j1; job j2; job j3; retire b -- route j1 redirect=b; route j1 redirect=c refused=unknown error=none; show j1;
            route j2 redirect=a refused=input error=bad; show j2; route j3 redirect=a; show j3",
            expect![[r#"
                ! the agent version is no longer registered with this package
                j1 Granted pending→running without a lease
                j1 Ended running→failed Agent: none
                j1: failed attempt 0 redirect under 4 as c priority 0
                j2 Granted pending→running without a lease
                j2 Ended running→failed Agent: bad
                j2: failed attempt 0 redirect under 4 as a priority 0
                j3 Routed pending→pending Queued
                j3: pending Queued attempt 0 redirect under 4 as a priority 0
            "#]],
        );
    }

    #[test]
    fn a_swap_voids_decisions_until_the_first_lease() {
        routed(
            r#"job j1; job j2; job j3; route j1 redirect=b; route j2 execute; grant j2 n1; route j3 redirect=b --
            put routing default {"orchestrator":"s"}; route j2 execute; grant j1 n1; route j1 execute generation=1; route j1; show j1;
            route j1; route j1 execute; show j1; put routing default {}; grant j3 n1; route j3; route j3 execute; show j3;
            lose j2; grant j2 n1"#,
            expect![[r#"
                routing default uid 4 revision 12 {"orchestrator":"s"}
                ! the job is Running
                ! the routing decision about the job is outdated
                ! the routing decision about the job is outdated
                j1 Routed pending→pending Routing { until: ClusterTime(11000000) }
                j1: pending Routing { until: ClusterTime(11000000) } attempt 0 undecided under 0 as a priority 0
                ! the routing decision about the job is outdated
                j1 Routed pending→pending Queued
                j1: pending Queued attempt 0 execute under 12 as a priority 0
                routing default uid 4 revision 15 {}
                ! the routing decision about the job is outdated
                j3 Routed pending→pending Routing { until: ClusterTime(18446744073709551615) }
                j3 Routed pending→pending Queued
                j3: pending Queued attempt 0
                j2 Lost running→pending Lost
                j2 Granted pending→running on n1 token 2 attempt 2
            "#]],
        );
    }

    #[test]
    fn a_change_of_the_selected_rules_voids_decisions() {
        let rules = r#"put orchestrator r {"rules":[{"allow":true}]}; put orchestrator s {"rules":[{"allow":true}]}"#;
        routed(
            &format!(
                r#"{rules}; job j1; route j1 execute rule=first -- show j1; put orchestrator s {{"rules":[{{"priority":1}}]}};
            route j1; put orchestrator r {{"rules":[{{"priority":1}}]}}; grant j1 n1; route j1; route j1 execute rule=second;
            grant j1 n1; show j1; delete-object orchestrator r; delete-object orchestrator s"#
            ),
            expect![[r#"
                j1: pending Queued attempt 0 execute by first under 5 as a priority 0
                orchestrator s uid 6 revision 9 {"rules":[{"priority":1}]}
                ! the routing decision about the job is outdated
                orchestrator r uid 5 revision 10 {"rules":[{"priority":1}]}
                ! the routing decision about the job is outdated
                j1 Routed pending→pending Routing { until: ClusterTime(11000000) }
                j1 Routed pending→pending Queued
                j1 Granted pending→running on n1 token 1 attempt 1
                j1: running Running attempt 1 execute by second under 10 as a priority 0
                ! the object is in use by the selection of the namespace
                orchestrator s deleted
            "#]],
        );
    }

    #[test]
    fn a_decision_holds_for_the_retries_of_a_job_and_a_reject_does_not() {
        check(
            r#"level 6; agent a retries=1; agent b retries=1; node n1; put routing default {"orchestrator":"r"}; job j1; job j2 --
            route j1 redirect=b; grant j1 n1; fail j1; clock +9; wake j1'1; put routing default {"orchestrator":"s"}; show j1'1; grant j1'1 n1;
            route j2 reject=no; clock +9; wake j2'1; grant j2'1 n1; route j2'1; show j2'1"#,
            expect![[r#"
                j1 Routed pending→pending Queued
                j1 Granted pending→running on n1 token 1 attempt 1
                j1 Ended running→failed Agent: boom
                j1'1 Submitted pending→pending Backoff { until: ClusterTime(2000000) }
                j1'1 Woken pending→pending Queued
                routing default uid 4 revision 12 {"orchestrator":"s"}
                j1'1: pending Queued attempt 0 redirect under 4 as b priority 0
                j1'1 Granted pending→running on n1 token 2 attempt 1
                j2 Granted pending→running without a lease
                j2 Ended running→failed Rejected: no
                j2'1 Submitted pending→pending Backoff { until: ClusterTime(11000000) }
                j2'1 Woken pending→pending Queued
                ! the routing decision about the job is outdated
                j2'1 Routed pending→pending Routing { until: ClusterTime(29000000) }
                j2'1: pending Routing { until: ClusterTime(29000000) } attempt 0 undecided under 0 as a priority 0
            "#]],
        );
    }

    #[test]
    fn a_retry_can_be_redirected_to_an_agent_with_fewer_retries() {
        check(
            r#"level 6; agent a retries=1; agent b; node n1; put routing default {"orchestrator":"r"}; job j1 --
            route j1 reject=no; clock +9; wake j1'1; route j1'1; route j1'1 redirect=b; grant j1'1 n1; fail j1'1"#,
            expect![[r#"
                j1 Granted pending→running without a lease
                j1 Ended running→failed Rejected: no
                j1'1 Submitted pending→pending Backoff { until: ClusterTime(2000000) }
                j1'1 Woken pending→pending Queued
                j1'1 Routed pending→pending Routing { until: ClusterTime(20000000) }
                j1'1 Routed pending→pending Queued
                j1'1 Granted pending→running on n1 token 1 attempt 1
                j1'1 Ended running→failed Agent: boom
            "#]],
        );
    }

    #[test]
    fn a_job_that_waits_for_a_decision_can_be_cancelled_and_times_out() {
        check(
            r#"level 6; agent a queue=5; node n1; put routing default {"fallback":"wait","orchestrator":"r"}; job j1; job j2 --
            show j1; cancel j1; clock +6; fail-pending j2 kind=queue-timeout error=late; show j2"#,
            expect![[r#"
                j1: pending Routing { until: ClusterTime(18446744073709551615) } attempt 0 undecided under 0 as a priority 0
                j1 Ended pending→cancelled
                j2 Granted pending→running without a lease
                j2 Ended running→failed QueueTimeout: late
                j2: failed attempt 0 undecided under 0 as a priority 0
            "#]],
        );
    }

    #[test]
    fn what_was_not_approved_is_not_retried_on_hardware_that_is_held() {
        check(
            r#"level 6; agent p spawns=true gpus=1; agent a; agent b gpus=1 retries=1; node n1 gpus=80; put routing default {"orchestrator":"r"};
            job j1 agent=p; route j1 execute; grant j1 n1; spawn j1 c1 agent=a; spawn j1 c2 agent=a --
            route c1 redirect=b; route c2 redirect=b asked=1; retry c2 j9"#,
            expect![[r#"
                c1 Granted pending→running without a lease
                c1 Ended running→failed Unsatisfiable: the child needs hardware that its waiting parents hold
                c1'1 Submitted pending→pending Backoff { until: ClusterTime(2000000) }
                c2 Granted pending→running without a lease
                c2 Ended running→failed Unsatisfiable: the child needs hardware that its waiting parents hold
                ! the job was not approved, so it cannot be run again
            "#]],
        );
    }
}
