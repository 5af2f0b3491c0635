//! Runs as JSON: exactly the members of Atlas for Python, and ours with [`View::Full`].

use std::collections::BTreeMap;

use atlas_records::View;
use atlas_runs::{FailureReport, Plan, StepReport, result};
use atlas_types::{Payload, Run, RunFault, RunStatus, RunStep, StepLeft, Timestamp};
use serde_json::{Value, json};

use crate::{Error, Service};

impl Service {
    pub(super) async fn show_run(&self, run: &Run, view: View) -> Result<Value, Error> {
        let result = match run.status.is_terminal() {
            true => self.result_of(run).await?,
            false => Value::Null,
        };
        let mut shown = json!({
            "id": run.id.shown(),
            "chain_name": *run.chain,
            "status": run.status.as_str(),
            "input_data": self.value(&run.input).await?,
            "created_at": seconds(run.created_at),
            "completed_at": seconds(run.completed_at),
            "current_step": run.current_step(),
            "total_steps": run.total_steps,
            "result": result,
        });
        if view == View::Full {
            let plan = match &run.plan {
                Some(plan) => serde_json::from_value::<Plan>(self.value(plan).await?).ok(),
                None => None,
            };
            shown["revision"] = run.revision.map_or(Value::Null, |revision| json!(revision.0));
            shown["definition"] = self.value(&run.definition).await?;
            shown["priority"] = json!(run.priority);
            shown["version"] = json!(run.version);
            shown["step_jobs"] = run.steps.iter().map(|step| step_value(run, plan.as_ref(), step)).collect();
            if let Some(branches) = &run.branches {
                let name = |number: u32| plan.as_ref()?.steps.get(number as usize).map(|step| step.name.as_str());
                let left = |left: &StepLeft| json!({"step": left.number, "name": name(left.number), "error": left.error.as_deref()});
                shown["steps_left"] = branches.left.iter().map(left).collect();
            }
            shown["failure"] = self.failure_of(run, plan.as_ref()).await?;
            shown["job_id"] = run.job.map_or(Value::Null, |job| json!(job.to_string()));
        }
        Ok(shown)
    }

    async fn result_of(&self, run: &Run) -> Result<Value, Error> {
        let mut steps = Vec::with_capacity(run.steps.len());
        for step in last_tries(run) {
            let end = match &step.output {
                Some(output) => Ok(self.value(output).await?),
                None => Err(step_error(run, step)),
            };
            let number = step.number as usize;
            steps.push(StepReport { number, agent: step.agent.to_string(), strategy: step.strategy, end });
        }
        let failed = FailureReport { at: run.failed_at(), error: run.error() };
        Ok(result(&steps, Some(&failed).filter(|_| run.status != RunStatus::Completed)))
    }

    /// The JSON value of a payload.
    pub(super) async fn value(&self, payload: &Payload) -> Result<Value, Error> {
        serde_json::from_slice(&self.bytes(payload).await?).map_err(|error| Error::internal("read a run", &error))
    }
}

/// The last try of each step, in the order of the chain.
fn last_tries(run: &Run) -> impl Iterator<Item = &RunStep> {
    run.steps.iter().map(|step| (step.number, &**step)).collect::<BTreeMap<_, _>>().into_values()
}

/// Why a step has no output.
fn step_error(run: &Run, step: &RunStep) -> String {
    if run.branches.is_some() {
        return step.fault.as_ref().unwrap_or(&RunFault::Cancelled).step_error(&step.agent);
    }
    run.failure.as_ref().map_or(&RunFault::Cancelled, |failure| &failure.fault).step_error(&step.agent)
}

/// A step that was started, with the job that runs it.
fn step_value(run: &Run, plan: Option<&Plan>, step: &RunStep) -> Value {
    let planned = plan.and_then(|plan| plan.steps.get(step.number as usize));
    let status = match (&step.output, run.status) {
        (Some(_), _) => "completed",
        (None, _) if step.fault == Some(RunFault::Cancelled) => "cancelled",
        (None, _) if step.fault.is_some() => "failed",
        (None, RunStatus::Failed) if run.branches.is_some() => "cancelled",
        (None, RunStatus::Failed) => "failed",
        (None, RunStatus::Cancelled) => "cancelled",
        (None, _) => "running",
    };
    json!({
        "step": step.number,
        "name": planned.map(|step| step.name.as_str()),
        "agent": *step.agent,
        "version": planned.map(|step| step.version.as_str()),
        "job_id": step.job.to_string(),
        "status": status,
        "strategy": step.strategy.as_str(),
    })
}

/// Unix seconds; 0.0 if it has not come.
fn seconds(time: Timestamp) -> f64 {
    time.0 as f64 / 1e6
}
