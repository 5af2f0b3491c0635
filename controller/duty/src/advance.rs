//! Runs of chains go on in the entry that ended their last step, as long as little data is concerned.
//!
//! [`NotHere`] lists what is left out: that is done beside the leader loop, by the same engine, which asks [`plan_step`] first. Inputs are
//! validated by the worker, so no expression of a schema is evaluated here.

use std::sync::Arc;

use atlas_runs::{Next, Plan, StepInput, context, next, step_job};
use atlas_state::State;
use atlas_types::{
    AdvanceRun, AgentName, AgentPin, Command, Payload, PayloadBody, Request, Run, RunFailure, RunFault, RunNext,
    SubmitJob, Verdict, Version,
};
use serde_json::Value;

use crate::request;
use crate::waits::waits_for_node;

/// Most bytes of a run that goes on here.
const BYTES_MAX: u64 = 16 * 1024;

/// Why a run does not go on in the leader loop. Beside it, it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotHere {
    #[error("policies decide on its step")]
    Policies,
    #[error("its agents are not looked up yet")]
    Unplanned,
    #[error("its chain has branches, whose conditions take their time")]
    Branches,
    #[error("it has much data")]
    Large,
    #[error("its data is not in the state, or cannot be read")]
    Elsewhere,
    #[error("its schemas take long to compare")]
    Schemas,
    #[error("an orchestrator decides on its step")]
    Orchestrator,
    #[error("a model converts the output of the step before")]
    Model,
    #[error("the version of the agent is not registered any more")]
    AgentGone,
    #[error("its agent is a chain: no worker compares the input with its schema")]
    Carried,
    #[error("agents that the agent requires are missing")]
    AgentsMissing,
    #[error("all its steps have completed")]
    Done,
}

/// Up to `budget` commands for runs whose next step can begin.
pub fn advance(state: &State, budget: usize) -> Vec<Request> {
    // One that has to wait for room would be proposed again and again. With policies, no run goes on here.
    if state.has_policies() || !state.steps_admitted(2 * BYTES_MAX * budget as u64, budget as u64) {
        return Vec::new();
    }
    let command = |run: &Arc<Run>| {
        let next = plan_step(state, run).ok()?;
        let command = AdvanceRun { run: run.id, version: run.version, plan: None, next };
        Some(request(&run.namespace, Command::AdvanceRun(command)))
    };
    state.runs_ready().filter_map(command).take(budget).collect()
}

/// What a run does next, if that takes little time and no data that is not at hand.
pub fn plan_step(state: &State, run: &Run) -> Result<RunNext, NotHere> {
    if state.has_policies() {
        return Err(NotHere::Policies);
    }
    if run.branches.is_some() {
        return Err(NotHere::Branches);
    }
    if run.inline_bytes() > BYTES_MAX {
        return Err(NotHere::Large);
    }
    let plan = value(run.plan.as_ref().ok_or(NotHere::Unplanned)?)?;
    let plan: Plan = serde_json::from_value(plan).map_err(|_| NotHere::Elsewhere)?;
    if !plan.orchestrator.is_empty() {
        return Err(NotHere::Orchestrator);
    }
    if !plan.is_light(run.steps.len()) {
        return Err(NotHere::Schemas);
    }
    let trigger = value(&run.input)?;
    let outputs = run.steps.iter().map(|step| value(step.output.as_ref().ok_or(NotHere::Elsewhere)?));
    let outputs: Vec<Value> = outputs.collect::<Result<_, _>>()?;
    match next(&plan, &trigger, &outputs) {
        Next::Step(input) => step(state, run, &plan, input, (&trigger, &outputs)),
        Next::Fail { index, error } => {
            let step = u32::try_from(index).ok();
            Ok(RunNext::Fail(RunFailure { step, fault: RunFault::Text(error.into()) }))
        }
        Next::Bridge { .. } => Err(NotHere::Model),
        Next::Done => Err(NotHere::Done),
    }
}

fn step(
    state: &State,
    run: &Run,
    plan: &Plan,
    input: StepInput,
    (trigger, outputs): (&Value, &[Value]),
) -> Result<RunNext, NotHere> {
    let StepInput { index, input, strategy } = input;
    let planned = plan.steps.get(index).ok_or(NotHere::Done)?;
    let agent = AgentName::new(&planned.agent).map_err(|_| NotHere::AgentGone)?;
    let version = planned.version.parse::<Version>().map_err(|_| NotHere::AgentGone)?;
    // What fails before it runs is told elsewhere, with a reason.
    let known = state.agent(&run.namespace, &agent, version).filter(|known| known.digest.hex() == planned.digest);
    let known = known.ok_or(NotHere::AgentGone)?;
    if known.spec.carried {
        return Err(NotHere::Carried);
    }
    if !state.missing_agents(&run.namespace, &known.spec.requires).is_empty() {
        return Err(NotHere::AgentsMissing);
    }
    let context = context(&run.chain, index, trigger, outputs).to_string();
    let input = Value::Object(input).to_string();
    if (context.len() + input.len()) as u64 > 2 * BYTES_MAX {
        return Err(NotHere::Large);
    }
    let verdict = Verdict::Accepted(AgentPin { version, digest: known.digest });
    let submit = SubmitJob {
        waits_for_node: waits_for_node(state, &run.namespace, None),
        context: Some(Payload::inline(context.as_bytes())),
        ..SubmitJob::new(run.next_job(), agent, verdict, Payload::inline(input.as_bytes()))
    };
    let submit = Box::new(step_job(run, plan, index, submit));
    Ok(RunNext::Step { agent: planned.agent.as_str().into(), strategy, submit })
}

/// The value of a payload that is at hand.
fn value(payload: &Payload) -> Result<Value, NotHere> {
    match &payload.body {
        PayloadBody::Inline(bytes) => serde_json::from_slice(bytes).map_err(|_| NotHere::Elsewhere),
        PayloadBody::Artifact { .. } => Err(NotHere::Elsewhere),
    }
}
