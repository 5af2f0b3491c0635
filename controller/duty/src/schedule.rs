//! Grants leases to waiting jobs, and explains why a job has none.

use atlas_scheduler::{Strategy, Waiting, describe, plan};
use atlas_state::State;
use atlas_types::{Command, FailPending, Failure, FailureKind, Job, Request};

use crate::{View, request, requirements};

/// Up to `budget` grants, and failures of jobs that no registered node could ever run or that lack agents which they require.
pub fn schedule(state: &State, strategy: Strategy, budget: usize) -> Vec<Request> {
    let plan = plan(&View(state), strategy, budget);
    let grants = plan.placements.into_iter().map(|placement| {
        // An agent may have gone while the job waited for room. One that parked has started: the agents were there.
        let job = state.job(placement.grant.job).filter(|job| !job.has_parked());
        let failed = job.and_then(|job| requirements::failed(state, job));
        request(&placement.namespace, failed.unwrap_or(Command::GrantLease(placement.grant)))
    });
    let failures = plan.never.into_iter().map(|never| {
        let error = format!("Insufficient hardware for {}: {}", never.agent, describe(&never.demand));
        let failure = Failure { kind: FailureKind::Unsatisfiable, error: error.into() };
        request(&never.namespace, Command::FailPending(FailPending { job: never.job, failure }))
    });
    grants.chain(failures).collect()
}

/// Says for what a job waits.
pub fn explain(state: &State, job: &Job) -> Waiting {
    atlas_scheduler::explain(&View(state), job)
}
