//! What the output of a job is as the answer of a model.

use atlas_model::{Answer, Part, Request, Stop, Usage};
use atlas_openai::WireError;
use atlas_service::{Service, Shown, reply_of};
use atlas_types::{Job, JobStatus};
use serde_json::{Map, Value};

use super::errors;

/// The answer of a job that has ended. `model` is the name in the request.
pub(super) fn answer(service: &Service, shown: &Shown, model: &str) -> Result<Answer, WireError> {
    let job = shown.job();
    if job.status != JobStatus::Completed {
        return Err(errors::of_job(shown, model));
    }
    let output = shown.output().unwrap_or_default();
    if service.is_model_call(job) {
        return serde_json::from_value(output)
            .map_err(|error| WireError::internal(format!("the answer of {} cannot be read: {error}", job.id)));
    }
    let parts = vec![Part::Text { text: reply_of(&output) }];
    Ok(Answer { parts, stop: Stop::End, usage: used(job), model: model.to_owned(), id: None, raw: Map::new() })
}

/// What an agent reports of its model calls.
fn used(job: &Job) -> Usage {
    let metadata: Value = serde_json::from_slice(&job.metadata).unwrap_or_default();
    let count = |name: &str| metadata[name].as_u64().unwrap_or_default();
    Usage { input: count("_trace_input_tokens"), output: count("_trace_output_tokens"), ..Usage::default() }
}

/// The request of a model call, from the input of its job. None if it is none.
pub(super) fn request(input: &Value) -> Option<Request> {
    let mut members = input["request"].as_object()?.clone();
    members.insert("model".to_owned(), "".into());
    serde_json::from_value(Value::Object(members)).ok()
}
