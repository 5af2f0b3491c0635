//! Runs with branches go on: what begins together is one command.

use atlas_runs::{End, Next, Plan, StepInput, Wave, Without, context, facts, wave};
use atlas_state::State;
use atlas_types::{Run, RunFailure, RunFault, RunNext, RunWave, StepLeft, Timestamp, WaveEnd, WaveStep};
use serde_json::Value;

use super::bridge;
use super::drive::{Begin, submit};
use crate::{Error, Service};

/// What the run does next; none if it has changed meanwhile.
pub(super) async fn continued(
    service: &Service,
    state: &State,
    run: &Run,
    plan: &Plan,
    trigger: &Value,
) -> Result<Option<RunNext>, Error> {
    let mut outputs = Vec::with_capacity(run.steps.len());
    for step in &run.steps {
        outputs.push(match &step.output {
            Some(output) => Some(service.value(output).await?),
            None => None,
        });
    }
    let Wave { mut start, bridges, mut left, mut end } = wave(plan, trigger, &facts(plan, run, &outputs));
    let mut waiting = bridges.len();
    // What can begin without a model begins first.
    if start.is_empty()
        && left.is_empty()
        && end.is_none()
        && let Some((index, conversion)) = bridges.first()
    {
        waiting -= 1;
        match bridge::convert(service, state, run, plan, (*index, conversion)).await? {
            None => return Ok(None),
            Some(Next::Step(input)) => start.push((input, pause_of(plan, run, *index))),
            Some(Next::Fail { index, error }) if plan.flow(index).on_failure == Without::Fail => {
                end = Some(End::Fail { index, error });
            }
            Some(Next::Fail { index, error }) => {
                left.push((index, Some(error)));
                waiting += 1; // Others may go on without it.
            }
            Some(Next::Bridge { .. } | Next::Done) => return Err(Error::Internal),
        }
    }
    let mut steps = Vec::with_capacity(start.len());
    let told = told(plan, run, &outputs);
    for ((input, pause), record) in start.into_iter().zip(run.steps.len()..) {
        let StepInput { index, strategy, .. } = input;
        let begin = Begin {
            id: run.job_at(record),
            context: context(&run.chain, index, trigger, &told),
            input,
            not_before: later(service, pause),
        };
        steps.push(WaveStep {
            number: number(index),
            agent: plan.steps.get(index).map_or("", |step| &step.agent).into(),
            strategy,
            submit: Box::new(submit(service, state, run, plan, begin).await?),
        });
    }
    let left = left.into_iter().map(|(index, error)| StepLeft { number: number(index), error: error.map(Into::into) });
    let end = end.map(|end| ended(run, end));
    let more = waiting > 0 && end.is_none();
    Ok(Some(RunNext::Wave(Box::new(RunWave { start: steps, left: left.collect(), more, end }))))
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// The outputs by the numbers of the steps; null for those that have none.
fn told(plan: &Plan, run: &Run, outputs: &[Option<Value>]) -> Vec<Value> {
    let mut told = vec![Value::Null; plan.steps.len()];
    for (step, output) in run.steps.iter().zip(outputs) {
        if let (Some(place), Some(output)) = (told.get_mut(step.number as usize), output) {
            *place = output.clone();
        }
    }
    told
}

/// The pause before a step that a model converts for again.
fn pause_of(plan: &Plan, run: &Run, index: usize) -> f64 {
    let tries = run.steps.iter().filter(|step| step.number == number(index)).count();
    match u32::try_from(tries) {
        Ok(tries @ 1..) => plan.flow(index).pause_s(tries),
        _ => 0.0,
    }
}

fn later(service: &Service, pause: f64) -> Option<Timestamp> {
    let now = service.shared.env.clock.wall().0;
    (pause > 0.0).then(|| Timestamp(now.saturating_add((pause * 1e6) as i64)))
}

fn ended(run: &Run, end: End) -> WaveEnd {
    let (index, fault) = match end {
        End::Complete => return WaveEnd::Complete,
        End::Fail { index, error } => (index, RunFault::Text(error.into())),
        End::Step(index) => {
            let last = run.steps.iter().rfind(|step| step.number == number(index));
            (index, last.and_then(|step| step.fault.clone()).unwrap_or(RunFault::Cancelled))
        }
    };
    WaveEnd::Fail(RunFailure { step: Some(number(index)), fault })
}
