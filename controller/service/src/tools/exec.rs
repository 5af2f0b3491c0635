//! `atlas.exec.spawn`, `status` and `cancel`, and `atlas.queue.inspect`.

use atlas_types::{AgentName, JobStatus};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{Call, NoResult};
use crate::{Consistency, Error, JobQuery, Service, Shown, Submission, View};

impl Service {
    /// Submits a job that nobody waits for. An agent needs the permission to spawn for it, as for a child.
    pub(super) async fn tool_spawn(&self, call: &Call<'_>) -> Result<Value, NoResult> {
        let refused = |why: String| Err(NoResult::Refused(why));
        let name = call.text("agent");
        if name.is_empty() {
            return Ok(json!({"error": "Missing 'agent' parameter"}));
        }
        if call.from.as_ref().is_some_and(|from| !from.job.spec.as_ref().is_some_and(|spec| spec.spawns)) {
            return refused("Agent does not have spawn_agents permission".to_owned());
        }
        let Ok(agent) = AgentName::new(name) else { return refused(format!("Agent not found: {name}")) };
        if let Some(from) = &call.from {
            let state = self.shared.current().await?;
            let (depth, max) = (from.job.depth(), state.config().spawn_depth_max);
            if depth >= max {
                return refused(format!("Max spawn depth ({max}) exceeded at depth {depth}"));
            }
            let id = from.spawned;
            if from.again && (state.job(id).is_some() || self.shared.archived(&state, id).await?.is_some()) {
                return Ok(json!({"job_id": id.to_string()}));
            }
        }
        let input = call.arguments.get("input").cloned().unwrap_or_else(|| json!({}));
        let priority = call.arguments.get("priority").map_or(0, whole);
        let questions = call.from.as_ref().map(|from| from.job.questions.clone()).unwrap_or_default();
        let submission = Submission { priority, questions, ..Submission::new(agent, Bytes::from(input.to_string())) };
        let mut caller = call.caller.clone();
        if let Some(from) = &call.from {
            // By the same rule as for a child.
            caller = caller.with_inbound(self.bearers().of(from.job.id));
        }
        let id = self.shared.jobs.submit_as(&caller, &submission, call.from.as_ref().map(|from| from.spawned)).await?;
        Ok(json!({"job_id": id.to_string()}))
    }

    pub(super) async fn tool_status(&self, call: &Call<'_>) -> Result<Value, NoResult> {
        let text = call.text("job_id");
        let Ok(id) = text.parse() else { return Ok(unknown(text)) };
        match self.job(&call.caller, id, View::Plain, Consistency::Linearizable).await {
            Ok(shown) => Ok(members(
                &shown,
                &["id", "agent_name", "status", "error", "created_at", "started_at", "completed_at", "execution_ms"],
            )),
            Err(Error::UnknownJob) => Ok(unknown(text)),
            Err(error) => Err(error.into()),
        }
    }

    /// Cancels a job that has not started, as the source's `DELETE` does.
    pub(super) async fn tool_cancel(&self, call: &Call<'_>) -> Result<Value, NoResult> {
        let cancelled = match call.text("job_id").parse() {
            Ok(id) => match self.cancel(&call.caller, id, false).await {
                Ok(cancelled) => cancelled,
                Err(Error::UnknownJob) => false,
                Err(error) => return Err(error.into()),
            },
            Err(_) => false,
        };
        Ok(json!({"cancelled": cancelled}))
    }

    /// The newest jobs, oldest first.
    pub(super) async fn tool_queue(&self, call: &Call<'_>) -> Result<Value, NoResult> {
        let limit = call.limit();
        let status = match call.text("status") {
            "" => None,
            word => match JobStatus::ALL.into_iter().find(|status| status.as_str() == word) {
                Some(status) => Some(status),
                None => return Err(NoResult::Refused(format!("'{word}' is not a valid JobStatus"))),
            },
        };
        if limit == 0 {
            return Ok(json!({"jobs": []}));
        }
        let query = JobQuery { status, limit, ..JobQuery::default() };
        let jobs = self.jobs(&call.caller, &query, View::Plain, Consistency::Linearizable).await?;
        let shown = jobs.iter().rev().map(|job| {
            let job = job.job();
            json!({
                "id": job.id.to_string(),
                "agent_name": job.agent.as_str(),
                "status": job.status.as_str(),
                "priority": job.priority,
                "created_at": job.created_at.as_unix_seconds(),
            })
        });
        Ok(json!({"jobs": shown.collect::<Vec<_>>()}))
    }
}

/// A priority as Atlas for Python converts it: fractions are cut off, texts may hold digits.
fn whole(value: &Value) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "a conversion from float to integer saturates")]
    let cut = |number: f64| number.trunc() as i64;
    match value {
        Value::String(text) => text.trim().parse().unwrap_or(0),
        other => other.as_i64().or_else(|| other.as_f64().map(cut)).unwrap_or(0),
    }
}

fn unknown(id: &str) -> Value {
    json!({"error": format!("Job '{id}' not found")})
}

/// Some members of a job as clients get it.
fn members(shown: &Shown, names: &[&str]) -> Value {
    let mut bytes = Vec::new();
    shown.write(&mut bytes, View::Plain);
    let mut all: Map<String, Value> = serde_json::from_slice(&bytes).unwrap_or_default();
    names.iter().map(|name| ((*name).to_owned(), all.remove(*name).unwrap_or_default())).collect::<Map<_, _>>().into()
}
