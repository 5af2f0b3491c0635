//! `POST /v1/responses`, and what is read of a response later.

use atlas_model::{Answer, Delta, Message, Request};
use serde_json::{Map, Value};

use crate::{AnswerMeta, Dialogue, WireError, dialogue};

/// A request that was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResponsesRequest {
    /// The model or agent, as the client names it.
    pub model: String,
    /// The request without `model` and `stream`.
    pub request: Request,
    pub stream: bool,
    /// The response is made whether or not its client stays, and asked for by its id.
    pub background: bool,
    /// Whether the response can be asked for later.
    pub store: bool,
    /// The response that this one goes on from. The door adds its messages with [`ResponsesRequest::continue_from`].
    pub previous_response_id: Option<String>,
    /// The conversation that this one belongs to. The door adds its messages in the same way.
    pub conversation: Option<String>,
    /// The client's own user (`safety_identifier` or `user`), for records; not sent to providers.
    pub user: Option<String>,
    /// At most 16 texts of the client; also in `echo`.
    pub metadata: Map<String, Value>,
    /// The members of the request that every form of the response repeats. The door keeps it with the job.
    pub echo: Map<String, Value>,
}

/// Reads a body. Errors name the member that is wrong.
pub fn read(_body: &[u8]) -> Result<ResponsesRequest, WireError> {
    Err(WireError::internal("not read yet"))
}

impl ResponsesRequest {
    /// Puts the messages of earlier responses before those of this one. Refuses results of tools that nobody called, and calls without a result.
    pub fn continue_from(&mut self, _earlier: &[Message]) -> Result<(), WireError> {
        Ok(())
    }

    /// Refuses what an agent behind the name of a model cannot follow.
    pub fn check_for_agent(&self) -> Result<(), WireError> {
        dialogue::check(&self.request, "input", "text.format")
    }

    /// The messages for an agent, once [`ResponsesRequest::check_for_agent`] has accepted the request.
    pub fn said(&self) -> Dialogue {
        Dialogue::of(&self.request)
    }
}

/// How far a response is.
#[derive(Debug, Clone, Copy)]
pub enum Phase<'a> {
    /// Its job waits.
    Queued,
    /// Its job runs.
    InProgress,
    /// Its job has ended: `completed`, or `incomplete` if the answer was cut.
    Answered(&'a Answer),
    /// Its job has failed.
    Failed(&'a WireError),
    /// Its job was cancelled.
    Cancelled,
}

/// The response as one value. `echo` is [`ResponsesRequest::echo`].
pub fn whole(_phase: Phase<'_>, _meta: &AnswerMeta, _echo: &Map<String, Value>) -> Value {
    Value::Null
}

/// The answer to `DELETE /v1/responses/ID`.
pub fn deleted(_id: &str) -> Value {
    Value::Null
}

/// The answer to `GET /v1/responses/ID/input_items`: the messages of the request as items, in their order.
pub fn input_items(_request: &Request, _id: &str) -> Value {
    Value::Null
}

/// Turns pieces of an answer into events. Each value has its name in `type`, which is the `event:` of its frame.
///
/// An event's `sequence_number` is the place in the answer that it reaches: events count one, and texts and arguments their bytes. So the same place
/// has the same number however the answer was cut into pieces, and a client that lost its connection goes on from any number
/// with the answer alone.
#[derive(Debug, Clone)]
pub struct Events {}

impl Events {
    /// Events of one response. With `starting_after`, only those with a larger number are returned.
    pub fn new(_meta: AnswerMeta, _echo: Map<String, Value>, _starting_after: Option<u64>) -> Self {
        Self {}
    }

    /// `response.created` and, in the background, `response.queued`. [`Events::delta`], [`Events::end`] and the others send them where this was
    /// not called.
    pub fn start(&mut self) -> Vec<Value> {
        Vec::new()
    }

    /// The events of a piece.
    pub fn delta(&mut self, _delta: &Delta) -> Vec<Value> {
        Vec::new()
    }

    /// Whether the answer can begin again; see [`chat::Chunks::reset`](crate::chat::Chunks::reset).
    pub fn reset(&mut self) -> bool {
        true
    }

    /// Pieces were missed: those that follow are ignored, and [`Events::end`] sends the rest of the answer.
    pub fn skip(&mut self) {}

    /// The last events: what no piece carried, the ends of all items, and `response.completed` or `response.incomplete`. An error if what
    /// was sent is not the beginning of the answer; the door then sends [`Events::fail`].
    pub fn end(&mut self, _answer: &Answer) -> Result<Vec<Value>, WireError> {
        Ok(Vec::new())
    }

    /// The last events of a response that failed: `response.failed`.
    pub fn fail(&mut self, _error: &WireError) -> Vec<Value> {
        Vec::new()
    }

    /// The last events of a response that was cancelled.
    pub fn cancel(&mut self) -> Vec<Value> {
        Vec::new()
    }
}
