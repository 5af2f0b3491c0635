//! Orchestrators: decisions on waiting jobs, as tasks beside the leader loop make them. What is decided depends on the job and the
//! selection alone, and some jobs are left to their deadline.

use atlas_state::State;
use atlas_types::{Command, Decider, Decision, Job, Request, RouteJob, Verdict};

use crate::rng::mix;
use crate::workload::{self, Agent};

/// Most decisions of one plan.
const WINDOW: usize = 4;

/// The decisions that are due.
pub(crate) fn decide(state: &State) -> Vec<Request> {
    let mut commands = Vec::new();
    for namespace in state.undecided_namespaces() {
        if state.routing(namespace).is_none() {
            continue;
        }
        let generation = state.generation(namespace);
        for job in state.undecided(namespace).take(WINDOW) {
            let Some(decision) = decision(job, generation.0) else { continue };
            let (job, decider) = (job.id, Decider::Orchestrator);
            let command =
                RouteJob { job, generation, decider, decision: Some(decision), priority: Some(1), rule: None };
            commands.push(workload::request(Command::RouteJob(command)));
        }
    }
    commands
}

/// None leaves the job to the fall-back.
fn decision(job: &Job, generation: u64) -> Option<Decision> {
    match mix(job.id.0 ^ generation) % 8 {
        0 => None,
        1 => Some(Decision::Reject("not today".into())),
        2 => Some(Decision::Redirect(Agent::Echo.name(), Verdict::Accepted(workload::pin(Agent::Echo)))),
        _ => Some(Decision::Execute),
    }
}
