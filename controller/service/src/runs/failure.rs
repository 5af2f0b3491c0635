//! Why a run failed, for people: the step, what its agent was given or returned, and which part of that is wrong.

use atlas_contract::schema::Validator;
use atlas_runs::Plan;
use atlas_types::{FailureKind, Run, RunFailure, RunFault};
use serde_json::{Value, json};

use super::drive::caller_of;
use crate::{Consistency, Error, Service};

impl Service {
    /// The step that failed, with what its job still has; null for a run that did not fail.
    pub(super) async fn failure_of(&self, run: &Run, plan: Option<&Plan>) -> Result<Value, Error> {
        let Some(RunFailure { step, fault }) = &run.failure else { return Ok(Value::Null) };
        let error = run.error();
        let Some(number) = *step else {
            return Ok(
                json!({"step": null, "name": null, "agent": null, "job_id": null, "reason": error, "at": null, "output": null}),
            );
        };
        let planned = plan.and_then(|plan| plan.steps.get(number as usize));
        let record = run.steps.iter().rfind(|step| step.number == number);
        let agent = record.map(|record| &*record.agent).or(planned.map(|step| step.agent.as_str()));
        let mut shown = json!({
            "step": number,
            "name": planned.map(|step| step.name.as_str()),
            "agent": agent,
            "job_id": null,
            "reason": reason(fault, number, agent.unwrap_or_default(), &error),
            "at": null,
            "output": null,
        });
        // A step that could not begin has no job.
        let Some(mut next) = record.map(|record| record.job).filter(|_| !matches!(fault, RunFault::Text(_))) else {
            return Ok(shown);
        };
        let (caller, state) = (caller_of(run), self.state(Consistency::Stale).await?);
        let job = loop {
            shown["job_id"] = json!(next.to_string());
            // What is not kept any more has nothing to show.
            let Ok(job) = self.shared.job_in(&caller, &state, next).await else { return Ok(shown) };
            match job.successor {
                Some(successor) => next = successor,
                None => break job,
            }
        };
        if let Some(output) = &job.output {
            shown["output"] = self.value(output).await.unwrap_or(Value::Null);
        }
        let kind = job.failure.as_ref().map(|failure| failure.kind);
        let places = match (kind, planned) {
            (Some(FailureKind::InputInvalid), Some(planned)) => {
                let input = self.value(&job.input).await.unwrap_or(Value::Null);
                places(&planned.input_schema, &input)
            }
            (Some(FailureKind::OutputInvalid), Some(planned)) => places(&planned.output_schema, &shown["output"]),
            _ => None,
        };
        shown["at"] = json!(places);
        Ok(shown)
    }
}

/// What went wrong, without the step.
fn reason(fault: &RunFault, number: u32, agent: &str, whole: &str) -> String {
    match fault {
        RunFault::Job(failure) => failure.error.to_string(),
        RunFault::Cancelled => "its job was cancelled".to_owned(),
        RunFault::Text(_) => match whole.split_once(&format!(" at step {number} ({agent}): ")) {
            Some((what, why)) => format!("{}: {why}", what.to_lowercase()),
            None => whole.to_owned(),
        },
    }
}

/// Where a value breaks a schema: `/a: type; /b/0: minimum`.
fn places(schema: &Value, value: &Value) -> Option<String> {
    let violations = Validator::compile(schema).ok()?.validate(value).err()?;
    atlas_contract::places(&violations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_told_without_the_step() {
        let text = RunFault::Text("".into());
        assert_eq!(reason(&text, 1, "b", "Mediation failed at step 1 (b): no"), "mediation failed: no");
        assert_eq!(reason(&text, 1, "b", "no such chain"), "no such chain");
        assert_eq!(reason(&RunFault::Cancelled, 1, "b", "x"), "its job was cancelled");
    }

    #[test]
    fn a_broken_schema_is_told_with_its_places() {
        let schema = json!({"properties": {"n": {"type": "integer"}}});
        assert_eq!(places(&schema, &json!({"n": "x"})).as_deref(), Some("/n: type"));
        assert_eq!(places(&schema, &json!({"n": 1})), None);
    }
}
