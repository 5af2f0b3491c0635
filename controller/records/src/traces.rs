//! Traces (compatibility §13.3): what each completed or failed job did, with the checks of its agent's `eval.yaml`.
//!
//! A trace is derived from the job when it is read, so whoever waited for a job can read its trace at once, on every member. Checks
//! are pure functions of an output, so they run at the same moment and are the same each time.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_contract::Eval;
use atlas_desk::{Caller, Consistency, Error};
use atlas_history::JobFilter;
use atlas_state::State;
use atlas_types::{AgentName, EventSeq, Job, JobStatus, Micros, Timestamp};
use serde_json::{Map, Value, json};

use crate::Records;
use crate::view::{Shown, View};

/// The newest traces that a list reaches.
const KEPT: usize = 5_000;
/// The most jobs of the state that one list examines.
const LOOKED_AT_MAX: usize = 100_000;

/// Selects traces.
#[derive(Debug, Clone, Default)]
pub struct TraceQuery {
    pub agent: Option<AgentName>,
    /// The most traces to return.
    pub limit: usize,
}

impl Records {
    /// The traces of the jobs that ended last, the latest first.
    pub async fn traces(
        &self,
        caller: &Caller,
        query: &TraceQuery,
        consistency: Consistency,
    ) -> Result<Vec<Value>, Error> {
        let state = self.desk.state(consistency).await?;
        let limit = query.limit.clamp(1, self.desk.limits.list_max.min(KEPT));
        let mut jobs = self.ended_in_state(caller, &state, query);
        let filter = JobFilter {
            namespace: Some(caller.namespace.clone()),
            agent: query.agent.clone(),
            by_end: true,
            // Jobs that are also in the state must not take the place of others.
            limit: limit + jobs.len(),
            ..JobFilter::default()
        };
        let archived = self.desk.archived_list(&state, filter).await?;
        let archived = archived.into_iter().filter(|listed| state.job(listed.id).is_none());
        let events: Vec<EventSeq> = archived.take(limit).map(|listed| listed.event).collect();
        jobs.extend(self.desk.archived_by(&state, events).await?);
        jobs.sort_by_key(|job| std::cmp::Reverse((job.completed_at, job.queue_seq)));
        let mut traces = Vec::with_capacity(limit.min(jobs.len()));
        for job in jobs.into_iter().take(limit) {
            traces.push(self.trace_of(&state, job).await?);
        }
        Ok(traces)
    }

    /// The trace of a job; none for a job that is unknown, has not ended or was cancelled.
    pub async fn trace(&self, caller: &Caller, id: &str, consistency: Consistency) -> Result<Value, Error> {
        let unknown = |error| if matches!(error, Error::UnknownJob) { Error::UnknownTrace } else { error };
        let id = self.desk.job_id(caller, id).await.map_err(unknown)?;
        let state = self.desk.state(consistency).await?;
        let job = self.desk.job_in(caller, &state, id).await.map_err(unknown)?;
        if !is_traced(&job) {
            return Err(Error::UnknownTrace);
        }
        self.trace_of(&state, job).await
    }

    /// Ended jobs that are still in the state.
    fn ended_in_state(&self, caller: &Caller, state: &State, query: &TraceQuery) -> Vec<Arc<Job>> {
        let jobs = [JobStatus::Completed, JobStatus::Failed]
            .into_iter()
            .flat_map(|status| state.jobs(&caller.namespace, Some(status), None).take(LOOKED_AT_MAX));
        jobs.filter(|job| query.agent.as_ref().is_none_or(|agent| job.agent == *agent)).cloned().collect()
    }

    /// The trace of a job that has one.
    pub async fn trace_of(&self, state: &State, job: Arc<Job>) -> Result<Value, Error> {
        let checks = self.checks(&job).await?;
        let shown = self.show(job.clone(), View::Full, Some(state)).await?;
        let results = match (checks, shown.output()) {
            (Some(eval), Some(Value::Object(output))) if !output.is_empty() => eval.run(&output),
            _ => Vec::new(),
        };
        let results: Vec<Value> = results.iter().map(atlas_contract::CheckResult::to_json).collect();
        Ok(trace(&shown, &results))
    }

    /// The checks of the agent version that a completed job ran; none if its package is gone or has none.
    async fn checks(&self, job: &Job) -> Result<Option<Arc<Eval>>, Error> {
        let Some(pin) = job.pin.as_ref().filter(|_| job.status == JobStatus::Completed) else { return Ok(None) };
        if let Some(known) = self.evals.get(pin.digest) {
            return Ok(known);
        }
        // A package that was deleted, or that no member has at the moment, must not hide the trace.
        let Ok(package) = self.desk.artifact(pin.digest).await else { return Ok(None) };
        let agent = job.agent.to_string();
        let read = self.desk.env.spawn_blocking("read-package", move || {
            let file = atlas_package::file_of(&package, atlas_contract::EVAL_FILE).ok()??;
            match Eval::parse(&file, &agent) {
                Ok(eval) => Some(Arc::new(eval)),
                Err(error) => {
                    tracing::warn!(%agent, %error, "an eval.yaml is ignored");
                    None
                }
            }
        });
        let eval = read.join().await.map_err(|_| Error::Internal)?;
        self.evals.put(pin.digest, eval.clone());
        Ok(eval)
    }
}

/// Whether a job has a trace.
pub fn is_traced(job: &Job) -> bool {
    matches!(job.status, JobStatus::Completed | JobStatus::Failed)
}

/// The object of a trace.
fn trace(shown: &Shown, eval_results: &[Value]) -> Value {
    let job = &*shown.job;
    let id = job.id.to_string();
    let metadata: Map<String, Value> = serde_json::from_slice(&job.metadata).unwrap_or_default();
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
    let count = |name: &str| metadata.get(name).and_then(Value::as_u64).unwrap_or(0);
    let (input, output, model) = (count("_trace_input_tokens"), count("_trace_output_tokens"), text("_trace_model"));
    let table = atlas_model::compatible_cost(model, input, output).0;
    let cost = if table > 0 { table } else { shown.usage.cost_nanodollars };
    json!({
        "trace_id": id,
        "job_id": id,
        "agent_name": job.agent.as_str(),
        "status": job.status.as_str(),
        "warmup_ms": milliseconds(job.warmup),
        "execution_ms": milliseconds(job.execution),
        "started_at": seconds(job.started_at),
        "completed_at": seconds(job.completed_at),
        "input_tokens": input,
        "output_tokens": output,
        "total_tokens": input + output,
        "model": model,
        "estimated_cost_usd": dollars(cost),
        "parent_trace_id": text("_parent_trace_id"),
        "chain_name": text("_chain_name"),
        "step_index": metadata.get("_step_index").and_then(Value::as_i64).unwrap_or(-1),
        "eval_results": eval_results,
        "metadata": metadata.iter().filter(|(name, _)| !name.starts_with('_')).collect::<BTreeMap<_, _>>(),
    })
}

fn milliseconds(time: Micros) -> f64 {
    time.0 as f64 / 1e3
}

fn seconds(time: Timestamp) -> f64 {
    if time == Timestamp::NOT_YET { 0.0 } else { time.0 as f64 / 1e6 }
}

/// Dollars with six decimals.
fn dollars(nanodollars: u64) -> f64 {
    (nanodollars as f64 / 1e3).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_has_six_decimals() {
        assert_eq!([2_758_650, 499, 500].map(dollars), [0.002_759, 0.0, 0.000_001]);
    }
}
