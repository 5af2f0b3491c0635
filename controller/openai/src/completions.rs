//! `POST /v1/completions`: a text that goes on from a prompt. The prompt becomes one message of the user.

use atlas_model::{Answer, Delta, Request};
use serde_json::Value;

use crate::{AnswerMeta, Dialogue, WireError, dialogue};

/// A request that was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompletionRequest {
    /// The model or agent, as the client names it.
    pub model: String,
    /// The request without `model` and `stream`.
    pub request: Request,
    pub stream: bool,
    /// Whether the last chunk has the usage.
    pub include_usage: bool,
    /// The client's own user, for records; not sent to providers.
    pub user: Option<String>,
}

/// Reads a body. Errors name the member that is wrong.
pub fn read(_body: &[u8]) -> Result<CompletionRequest, WireError> {
    Err(WireError::internal("not read yet"))
}

impl CompletionRequest {
    /// Refuses what an agent behind the name of a model cannot follow.
    pub fn check_for_agent(&self) -> Result<(), WireError> {
        dialogue::check(&self.request, "prompt", "prompt")
    }

    /// The message for an agent.
    pub fn said(&self) -> Dialogue {
        Dialogue::of(&self.request)
    }
}

/// The answer as one value.
pub fn whole(_answer: &Answer, _meta: &AnswerMeta) -> Value {
    Value::Null
}

/// Turns pieces of an answer into chunks; see [`chat::Chunks`](crate::chat::Chunks), whose methods these are.
#[derive(Debug, Clone)]
pub struct Chunks {}

impl Chunks {
    /// Chunks of one answer. With `include_usage`, the last one has the usage.
    pub fn new(_meta: AnswerMeta, _include_usage: bool) -> Self {
        Self {}
    }

    /// The chunks of a piece.
    pub fn delta(&mut self, _delta: &Delta) -> Vec<Value> {
        Vec::new()
    }

    /// Whether the answer can begin again.
    pub fn reset(&mut self) -> bool {
        true
    }

    /// Pieces were missed.
    pub fn skip(&mut self) {}

    /// The last chunks.
    pub fn end(&mut self, _answer: &Answer) -> Result<Vec<Value>, WireError> {
        Ok(Vec::new())
    }
}
