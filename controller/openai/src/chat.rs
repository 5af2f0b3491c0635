//! `POST /v1/chat/completions`.

use atlas_model::{Answer, Delta, Request};
use serde_json::{Map, Value};

use crate::{AnswerMeta, Dialogue, WireError, dialogue};

/// A request that was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChatRequest {
    /// The model or agent, as the client names it.
    pub model: String,
    /// The request without `model` and `stream`: what goes into the job ([`job_input`](crate::job_input)).
    pub request: Request,
    /// Whether the client wants chunks.
    pub stream: bool,
    /// Whether the last chunk has the usage.
    pub include_usage: bool,
    /// The client's own user (`safety_identifier` or `user`), for records; not sent to providers.
    pub user: Option<String>,
    /// At most 16 texts of the client, for records; not sent to providers.
    pub metadata: Map<String, Value>,
}

/// Reads a body. Errors name the member that is wrong.
pub fn read(_body: &[u8]) -> Result<ChatRequest, WireError> {
    Err(WireError::internal("not read yet"))
}

impl ChatRequest {
    /// Refuses what an agent behind the name of a model cannot follow.
    pub fn check_for_agent(&self) -> Result<(), WireError> {
        dialogue::check(&self.request, "messages", "response_format")
    }

    /// The messages for an agent, once [`ChatRequest::check_for_agent`] has accepted the request.
    pub fn said(&self) -> Dialogue {
        Dialogue::of(&self.request)
    }
}

/// The answer as one value.
pub fn whole(_answer: &Answer, _meta: &AnswerMeta) -> Value {
    Value::Null
}

/// Turns pieces of an answer into chunks. The texts of all chunks together are exactly those of [`whole`].
#[derive(Debug, Clone)]
pub struct Chunks {}

impl Chunks {
    /// Chunks of one answer. With `include_usage`, the last one has the usage.
    pub fn new(_meta: AnswerMeta, _include_usage: bool) -> Self {
        Self {}
    }

    /// The chunk with the role, if it was not sent: says to the client that the answer has begun. [`Chunks::delta`] and [`Chunks::end`] send
    /// it where this was not called.
    pub fn start(&mut self) -> Vec<Value> {
        Vec::new()
    }

    /// The chunks of a piece.
    pub fn delta(&mut self, _delta: &Delta) -> Vec<Value> {
        Vec::new()
    }

    /// The answer begins again (another try, or another model): whether that is possible. It is until a piece was sent, because clients cannot
    /// take back what they have. If it is not, end the stream with [`WireError::body`].
    pub fn reset(&mut self) -> bool {
        true
    }

    /// Pieces were missed: those that follow are ignored, and [`Chunks::end`] sends the rest of the answer.
    pub fn skip(&mut self) {}

    /// The last chunks: what no piece carried, the reason of the end, and the usage. An error if what was sent is not the beginning of the
    /// answer. `data: [DONE]` follows, which the door writes.
    pub fn end(&mut self, _answer: &Answer) -> Result<Vec<Value>, WireError> {
        Ok(Vec::new())
    }
}
