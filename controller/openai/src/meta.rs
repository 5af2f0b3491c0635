//! What an answer says about itself, and the job of a call.

use atlas_model::Request;
use serde_json::{Value, json};

/// What an answer says besides its content. The door makes it, and keeps it the same for all pieces of one answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnswerMeta {
    /// The id of the answer with its prefix: `chatcmpl-…`, `cmpl-…` or `resp_…`. Ids of the parts of a response are made from it.
    pub id: String,
    /// When the answer began, in seconds since 1970.
    pub created: u64,
    /// When it was complete, in seconds since 1970, as far as that is known. Only responses show it.
    pub completed: Option<u64>,
    /// The model as the client named it.
    pub model: String,
}

/// The input of the job that makes a model call: the name of the model, and the request without the members that the worker sets
/// (`model`, `stream`, `idempotency_key`).
pub fn job_input(model: &str, request: &Request) -> Value {
    let mut value = serde_json::to_value(request).unwrap_or_default();
    if let Some(members) = value.as_object_mut() {
        for name in ["model", "stream", "idempotency_key"] {
            members.shift_remove(name);
        }
    }
    json!({ "model": model, "request": value })
}
