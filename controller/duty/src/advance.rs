//! Runs of chains go on in the entry that ended their last step, as long as little data is concerned.
//!
//! What is left out here is done beside the leader loop, by the same engine: new runs, large data, schemas that take long to compare,
//! conversions by a model, chains with an orchestrator, and all runs of a cluster with policies. Inputs are validated by the worker, so no expression of a schema is evaluated here.

use std::sync::Arc;

use atlas_runs::{Next, Plan, StepInput, context, metadata, next};
use atlas_state::State;
use atlas_types::{
    AdvanceRun, AgentName, AgentPin, Command, Payload, PayloadBody, Request, Run, RunFailure, RunFault, RunNext,
    SubmitJob, Verdict, Version,
};
use serde_json::Value;

use crate::request;

/// Most bytes of a run that goes on here.
const BYTES_MAX: u64 = 16 * 1024;

/// Up to `budget` commands for runs whose next step can begin.
pub fn advance(state: &State, budget: usize) -> Vec<Request> {
    let next = |run: &Arc<Run>| {
        let next = next_of(state, run)?;
        let command = AdvanceRun { run: run.id, version: run.version, plan: None, next };
        Some(request(&run.namespace, Command::AdvanceRun(command)))
    };
    // One that has to wait for room would be proposed again and again.
    // Policies decide on each step, beside the leader loop as well.
    let room = !state.has_policies() && state.steps_admitted(2 * BYTES_MAX * budget as u64, budget as u64);
    state.runs_ready().filter(|_| room).filter_map(next).take(budget).collect()
}

fn next_of(state: &State, run: &Run) -> Option<RunNext> {
    // Conditions take their time, so chains with branches go on beside the leader loop.
    if run.inline_bytes() > BYTES_MAX || run.branches.is_some() {
        return None;
    }
    let plan: Plan = serde_json::from_value(value(run.plan.as_ref()?)?).ok()?;
    let index = run.steps.len();
    // An orchestrator is asked beside the leader loop.
    if !plan.is_light(index) || !plan.orchestrator.is_empty() {
        return None;
    }
    let trigger = value(&run.input)?;
    let outputs: Vec<Value> = run.steps.iter().map(|step| value(step.output.as_ref()?)).collect::<Option<_>>()?;
    match next(&plan, &trigger, &outputs) {
        Next::Step(input) => step(state, run, &plan, input, (&trigger, &outputs)),
        Next::Fail { index, error } => {
            let step = u32::try_from(index).ok();
            Some(RunNext::Fail(RunFailure { step, fault: RunFault::Text(error.into()) }))
        }
        Next::Bridge { .. } | Next::Done => None,
    }
}

fn step(
    state: &State,
    run: &Run,
    plan: &Plan,
    input: StepInput,
    (trigger, outputs): (&Value, &[Value]),
) -> Option<RunNext> {
    let StepInput { index, input, strategy } = input;
    let planned = plan.steps.get(index)?;
    let (agent, version) = (AgentName::new(&planned.agent).ok()?, planned.version.parse::<Version>().ok()?);
    let known = state.agent(&run.namespace, &agent, version)?;
    // What fails before it runs is told elsewhere, with a reason.
    if known.digest.hex() != planned.digest || !state.missing_agents(&run.namespace, &known.spec.requires).is_empty() {
        return None;
    }
    let context = context(&run.chain, index, trigger, outputs).to_string();
    let input = Value::Object(input).to_string();
    if (context.len() + input.len()) as u64 > 2 * BYTES_MAX {
        return None;
    }
    let submit = SubmitJob {
        id: run.next_job(),
        agent,
        verdict: Verdict::Accepted(AgentPin { version, digest: known.digest }),
        input: Payload::inline(input.as_bytes()),
        priority: run.priority,
        metadata: metadata(run, index),
        labels: Arc::default(),
        execution_timeout: None,
        spawner: None,
        not_before: None,
        bearer: false,
        budget_nanodollars: None,
        waits_for_node: false,
        questions: atlas_types::QuestionRule::Fail,
        policies: Vec::new(),
        context: Some(Payload::inline(context.as_bytes())),
    };
    Some(RunNext::Step { agent: planned.agent.as_str().into(), strategy, submit: Box::new(submit) })
}

/// The value of a payload; none if it is not at hand.
fn value(payload: &Payload) -> Option<Value> {
    match &payload.body {
        PayloadBody::Inline(bytes) => serde_json::from_slice(bytes).ok(),
        PayloadBody::Artifact { .. } => None,
    }
}
