//! Tasks: long calls of clients that know the tasks extension. A task is a job under its own id, so it survives the session, the
//! connection and the controller.

use std::sync::Arc;

use atlas_service::Shown;
use atlas_types::{Job, JobStatus, Question, Timestamp};
use rmcp::model::{DetailedTask, JsonObject, Task, TaskPayload, TaskStatus};
use serde_json::Value;

use crate::{questions, view};

/// How often a client should ask.
const POLL_INTERVAL_MS: u64 = 1_000;

/// A running job as a task.
pub(crate) fn of(job: &Job) -> Task {
    let updated = [job.completed_at, job.started_at, job.created_at].into_iter().find(|at| *at != Timestamp::NOT_YET);
    let updated = updated.unwrap_or(job.created_at);
    let task = Task::new(job.id.to_string(), TaskStatus::Working, iso(job.created_at), iso(updated));
    task.with_poll_interval_ms(POLL_INTERVAL_MS).with_status_message(job.status.as_str())
}

/// A job as a task with its result, and with those of its questions that the caller may answer. A job that failed is a completed task whose result is an error, like a failed tool.
pub(crate) fn detailed(shown: &Shown, asked: &[Arc<Question>]) -> DetailedTask {
    let job = shown.job();
    let payload = match job.status {
        JobStatus::Cancelled => TaskPayload::Cancelled,
        status if status.is_terminal() => TaskPayload::Completed { result: result(shown, asked) },
        _ if !asked.is_empty() => {
            let input_requests = questions::requests(asked.iter().map(AsRef::as_ref));
            TaskPayload::InputRequired { input_requests }
        }
        _ => TaskPayload::Working,
    };
    DetailedTask::new(of(job), payload)
}

fn result(shown: &Shown, asked: &[Arc<Question>]) -> JsonObject {
    match serde_json::to_value(view::job(shown, asked)) {
        Ok(Value::Object(result)) => result,
        _ => JsonObject::new(),
    }
}

/// ISO 8601 in UTC, with milliseconds.
fn iso(at: Timestamp) -> String {
    let instant = jiff::Timestamp::from_microsecond(at.0).unwrap_or_default();
    format!("{instant:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_iso_8601() {
        assert_eq!(iso(Timestamp(1_767_225_600_123_456)), "2026-01-01T00:00:00.123Z");
        assert_eq!(iso(Timestamp(i64::MAX)), "1970-01-01T00:00:00.000Z");
    }
}
