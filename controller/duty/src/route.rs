//! What the leader decides about jobs in place of their orchestrator: when its deadline has passed, and when the default one was selected.

use atlas_objects::Fallback;
use atlas_state::State;
use atlas_types::{Command, Decider, Decision, EventSeq, Job, Request, RouteJob};

use crate::request;

/// The reason of a job that the fall-back rejects.
const NO_DECISION: &str = "Rejected by orchestrator: no decision in time";

/// Up to `budget` decisions on jobs that waited for an orchestrator when the default one was selected: it allows them.
pub fn route(state: &State, budget: usize) -> Vec<Request> {
    let unselected = state.undecided_namespaces().filter(|namespace| state.routing(namespace).is_none());
    let jobs = unselected.flat_map(|namespace| state.undecided(namespace));
    jobs.take(budget)
        .map(|job| request(&job.namespace, Command::RouteJob(allowed(job, EventSeq(0), Decider::Default))))
        .collect()
}

/// Replaces an outdated decision: the default orchestrator allows the job, another one is asked.
pub(crate) fn again(state: &State, job: &Job) -> Command {
    let generation = state.generation(&job.namespace);
    let default = generation == EventSeq(0);
    let voided = RouteJob { decision: None, ..allowed(job, generation, Decider::Default) };
    Command::RouteJob(if default { allowed(job, generation, Decider::Default) } else { voided })
}

/// The decision of the fall-back on a job whose deadline has passed.
pub(crate) fn overdue(state: &State, job: &Job) -> Command {
    let generation = state.generation(&job.namespace);
    let fallback = state.routing(&job.namespace).map_or(Fallback::Allow, |routing| routing.spec.fallback);
    let decision = match fallback {
        Fallback::Allow => Decision::Execute,
        Fallback::Reject => Decision::Reject(NO_DECISION.into()),
        // The job has its deadline from an earlier selection.
        Fallback::Wait => {
            return Command::RouteJob(RouteJob { decision: None, ..allowed(job, generation, Decider::Default) });
        }
    };
    let decision = Some(decision);
    Command::RouteJob(RouteJob { decision, ..allowed(job, generation, Decider::Deadline) })
}

fn allowed(job: &Job, generation: EventSeq, decider: Decider) -> RouteJob {
    RouteJob { job: job.id, generation, decider, decision: Some(Decision::Execute), priority: None, rule: None }
}
