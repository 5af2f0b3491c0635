//! Runs of chains: started and cancelled by operators, and continued by the leader as soon as they can go on.

use std::sync::Arc;

use atlas_state::State;
use atlas_types::{
    AdvanceRun, CancelRun, Command, JobId, Namespace, Payload, Request, Run, RunDefinition, RunFailure, RunFault,
    RunId, RunNext, RunStrategy, RunWave, StartRun, StepLeft, WaveEnd, WaveStep,
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

/// What a run with branches does next: steps begin, at most two at a time, are tried three times, and some are left out.
fn wave(run: &Run) -> Option<RunNext> {
    let (mut start, mut left, mut runs, mut waits) = (Vec::new(), Vec::new(), false, false);
    let id = run.id.0;
    for number in 0..run.total_steps {
        if run.branches.iter().flat_map(|branches| &branches.left).any(|left| left.number == number) {
            continue;
        }
        let mut tries = run.steps.iter().filter(|step| step.number == number);
        match (tries.clone().count(), tries.next_back()) {
            (0, _) if mix(id ^ u64::from(number) ^ 13).is_multiple_of(6) => left.push(StepLeft { number, error: None }),
            (_, Some(step)) if step.is_open() => runs = true,
            (_, Some(step)) if step.output.is_some() => {}
            (3, _) if mix(id ^ 17).is_multiple_of(2) => {
                let failure = RunFailure { step: Some(number), fault: RunFault::Text("no way".into()) };
                return Some(ended(WaveEnd::Fail(failure)));
            }
            (3, _) => {}
            _ if start.len() == 2 => waits = true,
            _ => {
                let job = run.job_at(run.steps.len() + start.len());
                let agent = agent_of(job);
                let Command::SubmitJob(submit) = workload::submit(job.0, job, agent, 0).command else { return None };
                let (agent, strategy) = (agent.name().as_str().into(), RunStrategy::Direct);
                start.push(WaveStep { number, agent, strategy, submit: Box::new(submit) });
            }
        }
    }
    if start.is_empty() && !runs && !waits {
        return Some(ended(WaveEnd::Complete));
    }
    let more = !start.is_empty() && mix(id ^ run.version).is_multiple_of(4);
    Some(RunNext::Wave(Box::new(RunWave { start, left, more, end: None })))
}

fn ended(end: WaveEnd) -> RunNext {
    RunNext::Wave(Box::new(RunWave { start: Vec::new(), left: Vec::new(), more: false, end: Some(end) }))
}

fn agent_of(job: JobId) -> Agent {
    let agents = [Agent::Echo, Agent::Flaky, Agent::Parent, Agent::Sleeper, Agent::Carried];
    agents[(mix(job.0) % agents.len() as u64) as usize]
}

fn next(run: &Run) -> Option<RunNext> {
    if mix(run.id.0 ^ 19).is_multiple_of(2) {
        return wave(run);
    }
    if run.total_steps == 0 {
        return Some(RunNext::Complete);
    }
    let job = run.next_job();
    if mix(job.0 ^ 11).is_multiple_of(8) {
        let step = u32::try_from(run.steps.len()).ok();
        return Some(RunNext::Fail(RunFailure { step, fault: RunFault::Text("no way".into()) }));
    }
    let agent = agent_of(job);
    let Command::SubmitJob(submit) = workload::submit(job.0, job, agent, 0).command else { return None };
    Some(RunNext::Step { agent: agent.name().as_str().into(), strategy: RunStrategy::Direct, submit: Box::new(submit) })
}
