//! Grants leases to waiting jobs, and explains why a job has none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atlas_scheduler::{Brief, Closest, Counterfactual, Strategy, WaitExplanation, describe_fully, plan_without};
use atlas_state::State;
use atlas_types::{Command, Demand, FailPending, Failure, FailureKind, Job, NodeId, Request};

use crate::{View, request, requirements, route};

/// Up to `budget` grants on nodes that are not `away`, and failures of jobs that no registered node could ever run or that lack agents which they require.
pub fn schedule(state: &State, away: &BTreeSet<NodeId>, strategy: Strategy, budget: usize) -> Vec<Request> {
    let plan = plan_without(&View(state), away, strategy, budget);
    let grants = plan.placements.into_iter().map(|placement| {
        // An agent may have gone while the job waited for room. One that parked has started: the agents were there.
        let job = state.job_at(placement.queue_seq).filter(|job| job.id == placement.grant.job);
        let failed = || job.filter(|job| !job.has_parked()).and_then(|job| requirements::failed(state, job));
        let command = reroute(state, job).or_else(failed);
        request(&placement.namespace, command.unwrap_or(Command::GrantLease(placement.grant)))
    });
    let failures = plan.never.into_iter().map(|never| {
        if let Some(command) = reroute(state, state.job(never.job)) {
            return request(&never.namespace, command);
        }
        let error = format!("Insufficient hardware for {}: {}", never.agent, describe_fully(&never.demand));
        let failure = Failure { kind: FailureKind::Unsatisfiable, error: error.into() };
        request(&never.namespace, Command::FailPending(FailPending { job: never.job, failure }))
    });
    grants.chain(failures).collect()
}

/// What replaces the decision about a job that was made under another selection of orchestrators: only jobs whose turn has come are asked
/// about again.
fn reroute(state: &State, job: Option<&Arc<Job>>) -> Option<Command> {
    job.filter(|job| state.needs_route(job)).map(|job| route::again(state, job))
}

/// Says for what a job waits.
pub fn explain(state: &State, job: &Job) -> WaitExplanation {
    atlas_scheduler::explain(&View(state), job)
}

/// What a demand needs that no node has; none if some node could run it.
pub fn lacking(state: &State, demand: &Demand) -> Option<Closest> {
    atlas_scheduler::lacking(&View(state), demand)
}

/// The number of jobs that wait for a node, by what holds the first job of their class back.
/// The classes after `classes_max` count as [`Brief::Turn`].
pub fn waiting_by_reason(state: &State, classes_max: usize) -> BTreeMap<Brief, usize> {
    let mut counts = BTreeMap::new();
    for (index, (class, job)) in state.class_heads().filter(|(_, job)| !job.is_system()).enumerate() {
        let brief = if index < classes_max { atlas_scheduler::brief(&View(state), job) } else { Brief::Turn };
        *counts.entry(brief).or_default() += state.waiting_count(class);
    }
    counts
}

/// What would start a waiting job. `ends` ranks running jobs by their expected end.
pub fn counterfactuals(state: &State, job: &Job, ends: &dyn Fn(&Job) -> u64) -> Vec<Counterfactual> {
    atlas_scheduler::counterfactuals(&View(state), job, ends)
}
