//! Runs of chains: started and cancelled by operators, and continued by the leader as soon as they can go on.

use std::sync::Arc;

use atlas_state::State;
use atlas_types::{
    AdvanceRun, CancelRun, Command, Namespace, Payload, Request, Run, RunDefinition, RunFailure, RunFault, RunId,
    RunNext, RunStrategy, StartRun,
};

use crate::rng::{Rng, mix};
use crate::workload::{self, Agent};

/// An operator starts a run, or cancels one.
pub(crate) fn operate(state: &State, rng: &mut Rng) -> Command {
    let known: Vec<RunId> = state.runs(&Namespace::default_namespace(), None).map(|run| run.id).take(8).collect();
    if !known.is_empty() && rng.chance(300) {
        return Command::CancelRun(CancelRun { run: rng.pick(&known) });
    }
    let definition =
        RunDefinition::Given { chain: "chain".into(), steps: rng.below(4) as u32, document: Payload::inline(b"{}") };
    let (input, metadata) = (Payload::inline(b"{}"), Arc::from(*b"{}"));
    Command::StartRun(StartRun { id: RunId(rng.below(u64::MAX)), definition, input, priority: 0, metadata })
}

/// What the runs do next that can go on.
pub(crate) fn advance(state: &State) -> Vec<Request> {
    let next = |run: &Arc<Run>| {
        let command = AdvanceRun { run: run.id, version: run.version, plan: None, next: next(run)? };
        Some(workload::request(Command::AdvanceRun(command)))
    };
    state.runs_ready().filter_map(next).collect()
}

fn next(run: &Run) -> Option<RunNext> {
    if run.total_steps == 0 {
        return Some(RunNext::Complete);
    }
    let job = run.next_job();
    if mix(job.0 ^ 11).is_multiple_of(8) {
        let step = u32::try_from(run.steps.len()).ok();
        return Some(RunNext::Fail(RunFailure { step, fault: RunFault::Text("no way".into()) }));
    }
    let agents = [Agent::Echo, Agent::Flaky, Agent::Parent, Agent::Sleeper, Agent::Carried];
    let agent = agents[(mix(job.0) % agents.len() as u64) as usize];
    let Command::SubmitJob(submit) = workload::submit(job.0, job, agent, 0).command else { return None };
    Some(RunNext::Step { agent: agent.name().as_str().into(), strategy: RunStrategy::Direct, submit: Box::new(submit) })
}
