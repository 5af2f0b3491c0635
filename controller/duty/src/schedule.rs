//! Grants leases to waiting jobs, and says why a job has none.

use atlas_scheduler::{Strategy, Waiting, describe, plan};
use atlas_state::State;
use atlas_types::{Command, FailPending, Failure, FailureKind, Job, Request};

use crate::{View, request};

/// Up to `budget` grants, and failures of jobs that no registered node could ever run (spec §7.1, step 8).
pub fn schedule(state: &State, strategy: Strategy, budget: usize) -> Vec<Request> {
    let plan = plan(&View(state), strategy, budget);
    let grants = plan.placements.into_iter();
    let grants = grants.map(|placement| request(&placement.namespace, Command::GrantLease(placement.grant)));
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
