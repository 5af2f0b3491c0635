//! Parked jobs that wait for a provider of models: the worker has recorded which model is down, and what the call met.

use std::sync::Arc;

use atlas_state::State;
use atlas_types::{Job, PayloadBody, Step, StepKind, Wait};
use serde::Deserialize;

/// A step that records an outage.
#[derive(Deserialize)]
struct OutageStep {
    outage: Outage,
}

/// The members that are shown.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Outage {
    pub(crate) model: String,
    pub(crate) error: String,
}

/// The outage that a parked job waits for. One that also waits for something else says that instead.
pub(crate) fn awaited(state: &State, job: &Job) -> Option<Outage> {
    let waits = &job.parked.as_ref()?.waits;
    let only_time = waits.iter().all(|wait| matches!(wait, Wait::Time { .. }));
    state.journal(job.id).filter(|_| only_time).and_then(|journal| recorded(&journal.steps))
}

/// The last recorded outage, unless a model has answered since.
fn recorded(steps: &[Arc<Step>]) -> Option<Outage> {
    let mut since_answer = steps.iter().rev().take_while(|step| step.kind != StepKind::Model);
    let step = since_answer.find(|step| step.kind == StepKind::Sleep)?;
    let PayloadBody::Inline(outcome) = &step.outcome.body else { return None };
    Some(serde_json::from_slice::<OutageStep>(outcome).ok()?.outage)
}

#[cfg(test)]
mod tests {
    use atlas_types::{Payload, StepKey, StepUsage};

    use super::*;

    #[test]
    fn an_outage_is_over_with_the_next_answer() {
        let step = |kind, outcome: &str| {
            let outcome = Payload::inline(outcome.as_bytes());
            Arc::new(Step { kind, key: StepKey([1; 16]), outcome, usage: StepUsage::default() })
        };
        let down = r#"{"outage":{"model":"fast","since_us":1,"until_us":2,"error":"refused"}}"#;
        let mut steps = vec![step(StepKind::Model, "1"), step(StepKind::Sleep, down), step(StepKind::Effect, "2")];
        let expected = Outage { model: "fast".to_owned(), error: "refused".to_owned() };
        assert_eq!(recorded(&steps), Some(expected));
        steps.push(step(StepKind::Model, "3"));
        assert_eq!(recorded(&steps), None);
        assert_eq!(recorded(&[step(StepKind::Sleep, "null")]), None);
    }
}
