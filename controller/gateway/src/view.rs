//! Jobs, agents and errors as tool results.

use std::sync::Arc;

use atlas_api::OperationId;
use atlas_service::{Attempted, Caller, Error, Service, Shown, View, is_denial};
use atlas_types::Question;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};

use crate::hints;

/// Most bytes of an output inside a result. A larger one is a resource.
pub(crate) const OUTPUT_BYTES_MAX: usize = 64 * 1_024;

/// A result: the object as structured content, and as text for clients that only read text.
pub(crate) fn done(object: Map<String, Value>) -> CallToolResult {
    let object = Value::Object(object);
    let mut result = CallToolResult::success(vec![ContentBlock::text(object.to_string())]);
    result.structured_content = Some(object);
    result
}

/// A failed call, for the model to read.
pub(crate) fn failed(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text.into())])
}

/// The text of an error of a tool or a method. If a service function denied the call, that is recorded as a denial of its operation.
pub(crate) async fn refusal(
    service: &Service,
    caller: &Caller,
    (operation, name): (OperationId, &str),
    error: &Error,
) -> String {
    if is_denial(error) {
        let object = format!("mcp/{name}");
        service.audit().denied(caller, Attempted { verb: operation.name(), object: &object }, error).await;
    }
    error_text(error)
}

/// An error of the service: its code, what is wrong and where, and what to try.
pub(crate) fn error_text(error: &Error) -> String {
    text_with(error, &hints::with_tools(error))
}

/// The same where the tools of the platform are not at hand.
pub(crate) fn plain_error_text(error: &Error) -> String {
    text_with(error, &hints::without_tools(error))
}

fn text_with(error: &Error, hint: &str) -> String {
    let mut text = format!("error[{}]: {error}", error.entry().code);
    for violation in error.violations() {
        let at = if violation.pointer.is_empty() { "/" } else { &violation.pointer };
        text.push_str(&format!("\n  at {at}: {}", violation.message));
    }
    if !hint.is_empty() {
        text.push('\n');
        text.push_str(hint);
    }
    text
}

/// ISO 8601 in UTC, in whole seconds.
pub(crate) fn iso_seconds(at: atlas_types::Timestamp) -> String {
    let instant = jiff::Timestamp::from_second(at.0.div_euclid(1_000_000)).unwrap_or_default();
    instant.to_string()
}

/// The address of a job's output.
pub(crate) fn output_uri(job: &str) -> String {
    format!("atlas://jobs/{job}/output")
}

/// What a job's result says, and whether the job failed. `own` are those of its questions that the caller may answer.
pub(crate) fn job(shown: &Shown, own: &[Arc<Question>]) -> CallToolResult {
    let members = members(shown, own);
    let ended = shown.job().status.is_terminal();
    let failed = ended && members.contains_key("error");
    let mut result = done(members);
    result.is_error = failed.then_some(true);
    result
}

/// A question as it is shown to models.
fn asked(question: &Question) -> Value {
    let mut members = atlas_service::shown_question(question);
    let who = members.pointer_mut("/approval/who").map(Value::take);
    if let Value::Object(members) = &mut members {
        members.retain(|name, _| {
            ["id", "job", "kind", "prompt", "options", "many", "other", "schema", "deadline"].contains(&name.as_str())
        });
        if let Some(who) = who {
            members.insert("who".into(), who);
        }
    }
    members
}

/// The job as it is shown to models: no more than they need.
fn members(shown: &Shown, own: &[Arc<Question>]) -> Map<String, Value> {
    let mut text = Vec::new();
    shown.write(&mut text, View::Full);
    let mut job: Map<String, Value> = serde_json::from_slice(&text).unwrap_or_default();
    let mut take = |name: &str| job.remove(name).unwrap_or_default();
    let id = take("id");
    let mut members = Map::new();
    let uri = output_uri(id.as_str().unwrap_or_default());
    members.insert("job_id".into(), id);
    members.insert("status".into(), take("status"));
    members.insert("agent".into(), take("agent_name"));
    members.insert("agent_version".into(), take("agent_version"));
    let output = take("output_data");
    let output_bytes = output.to_string().len();
    if output_bytes > OUTPUT_BYTES_MAX {
        members.insert("output_bytes".into(), json!(output_bytes));
        members.insert("output_resource".into(), json!(uri));
    } else if !output.is_null() {
        members.insert("output".into(), output);
    }
    for name in ["error", "error_code", "failure_kind", "waiting_for"] {
        let value = take(name);
        if value.as_str().is_some_and(|text| !text.is_empty()) {
            members.insert(name.into(), value);
        }
    }
    if !own.is_empty() {
        let questions = own.iter().map(|question| asked(question)).collect();
        members.insert("questions".into(), Value::Array(questions));
        members.insert("next".into(), json!("ask the user, then call job_answer with this job_id"));
    } else if !shown.questions().is_empty() {
        let questions = shown.questions().iter().map(|question| asked(question)).collect();
        members.insert("questions_to_others".into(), Value::Array(questions));
        let next = "the job waits for an answer that this user may not give: tell the user who may, then call job_wait with this job_id";
        members.insert("next".into(), json!(next));
    } else if !shown.job().status.is_terminal() {
        members.insert("next".into(), json!("call job_wait with this job_id; the job continues"));
    }
    members
}
