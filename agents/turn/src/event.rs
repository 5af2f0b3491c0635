//! What a driver reports.

use atlas_model::{Answer, CallError, Image, Message};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The turn begins with this input. Images are apart from it.
    Started {
        input: Value,
        images: Vec<Image>,
        /// The messages of a conversation, the one to answer last; empty if the input is the only message.
        said: Vec<Message>,
    },
    /// The model answered.
    Answered(Box<Answer>),
    /// The model's tools returned. A call without a result counts as failed; results of other calls are ignored.
    Returned(Vec<ToolReturn>),
    /// Whether the agent may stop: none if it may, or what it is told.
    Stopping(Option<String>),
    /// The model call failed for good.
    Failed(CallError),
}

/// What came of one tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolReturn {
    /// [`ToolCall::id`](atlas_model::ToolCall::id).
    pub call: String,
    pub outcome: Outcome,
}

/// A tool's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It returned a value.
    Value(Value),
    /// It failed.
    Error {
        /// A type, in the sense of Python's exceptions: `ValueError`.
        kind: String,
        text: String,
    },
}

impl Outcome {
    /// A failure.
    pub fn error(kind: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Error { kind: kind.into(), text: text.into() }
    }
}
