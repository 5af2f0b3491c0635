//! What a model answers, whole or in pieces.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Message, Part, Role, ToolCall, Usage};

/// A finished answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub parts: Vec<Part>,
    pub stop: Stop,
    pub usage: Usage,
    /// The model that answered, as the provider names it; may be more exact than the requested one.
    pub model: String,
    /// The provider's id of the answer, for its support.
    pub id: Option<String>,
    /// Members of the provider's answer that have no place above.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub raw: Map<String, Value>,
}

impl Answer {
    /// The answer as the message that the next request repeats.
    pub fn message(&self) -> Message {
        Message { role: Role::Assistant, parts: self.parts.clone() }
    }

    /// All its texts, joined without a separator.
    pub fn text(&self) -> String {
        self.message().text()
    }

    /// The tools that the model calls, in its order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| if let Part::ToolCall(call) = part { Some(call) } else { None })
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It was done.
    End,
    /// The token limit of the answer or of the context was reached.
    Length,
    /// It waits for the results of tools.
    Tools,
    /// A text of [`Request::stop`](crate::Request::stop).
    Text,
    /// The provider's filter, or a refusal of the model.
    Refused,
    /// The provider's own word.
    Other(String),
}

/// A piece of an answer that arrives while the model writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    Text(String),
    Reasoning(String),
    /// A call begins. `index` counts the calls of the answer from 0.
    Call {
        index: usize,
        id: String,
        name: String,
    },
    /// More of a call's arguments, as JSON text.
    Arguments {
        index: usize,
        text: String,
    },
}
