//! The trace of a run of a chain (compatibility §13.3): those of the jobs of its steps, and their sums.

use atlas_records::is_traced;
use atlas_types::Timestamp;
use serde_json::{Value, json};

use crate::{Caller, Consistency, Error, Service};

/// Most traces of jobs in one.
const JOBS_MAX: usize = 500;

impl Service {
    /// The trace of a run, which may not have ended: the jobs that have ended, a step's failed jobs before those that they were retried as.
    pub(crate) async fn chain_trace(
        &self,
        caller: &Caller,
        id: &str,
        consistency: Consistency,
    ) -> Result<Value, Error> {
        let unknown = |error| if matches!(error, Error::UnknownRun) { Error::UnknownTrace } else { error };
        let run = self.find_run(caller, id, consistency).await.map_err(unknown)?;
        let state = self.state(consistency).await?;
        let mut steps: Vec<Value> = Vec::new();
        for step in &run.steps {
            let mut next = Some(step.job);
            while let Some(id) = next.filter(|_| steps.len() < JOBS_MAX) {
                // Jobs that were erased or deleted have no trace.
                let Ok(job) = self.shared.job_in(caller, &state, id).await else { break };
                next = job.successor;
                if is_traced(&job) {
                    steps.push(self.shared.records.trace_of(&state, job).await?);
                }
            }
        }
        let sum = |member: &str| steps.iter().filter_map(|step| step[member].as_f64()).sum::<f64>();
        let count = |member: &str| steps.iter().filter_map(|step| step[member].as_u64()).sum::<u64>();
        Ok(json!({
            "trace_id": run.id.shown(),
            "job_id": run.job.map(|job| job.to_string()).unwrap_or_default(),
            "agent_name": *run.chain,
            "chain_name": *run.chain,
            "step_index": -1,
            "status": run.status.as_str(),
            "started_at": seconds(run.created_at),
            "completed_at": seconds(run.completed_at),
            "warmup_ms": sum("warmup_ms"),
            "execution_ms": sum("execution_ms"),
            "input_tokens": count("input_tokens"),
            "output_tokens": count("output_tokens"),
            "total_tokens": count("total_tokens"),
            "estimated_cost_usd": (sum("estimated_cost_usd") * 1e6).round() / 1e6,
            "parent_trace_id": run.job.map(|job| job.to_string()).unwrap_or_default(),
            "model": "",
            "eval_results": [],
            "metadata": {},
            "failed_at": run.failed_at(),
            "error": run.error(),
            "steps": steps,
        }))
    }
}

fn seconds(time: Timestamp) -> f64 {
    if time == Timestamp::NOT_YET { 0.0 } else { time.0 as f64 / 1e6 }
}
