//! Messages of a conversation with a model.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Who wrote a message. System text is not a message: [`Request::system`](crate::Request::system).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person or program that asks, and the results of tools.
    User,
    /// The model.
    Assistant,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    /// In the order in which the model sees or wrote them.
    pub parts: Vec<Part>,
}

impl Message {
    /// A message of the user that is a text.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, parts: vec![Part::Text { text: text.into() }] }
    }

    /// All its texts, joined without a separator.
    pub fn text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None })
            .collect()
    }
}

/// The messages of a conversation, in their order. Copies share them until one of the copies changes, so that the request of each call does
/// not copy all that was said before.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Messages(Arc<Vec<Message>>);

impl Deref for Messages {
    type Target = Vec<Message>;

    fn deref(&self) -> &Vec<Message> {
        &self.0
    }
}

impl DerefMut for Messages {
    fn deref_mut(&mut self) -> &mut Vec<Message> {
        Arc::make_mut(&mut self.0)
    }
}

impl<'a> IntoIterator for &'a Messages {
    type Item = &'a Message;
    type IntoIter = std::slice::Iter<'a, Message>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Vec<Message>> for Messages {
    fn from(messages: Vec<Message>) -> Self {
        Self(Arc::new(messages))
    }
}

impl Serialize for Messages {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Messages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text { text: String },
    /// An image of the user.
    Image(Image),
    /// The model calls a tool.
    ToolCall(ToolCall),
    /// What a tool returned. Only in messages of the user.
    ToolResult(ToolResult),
    /// The model's reasoning. Providers that sign it want it back unchanged with the tool calls that follow it.
    Reasoning {
        text: String,
        /// What the provider needs to recognise it (a signature, an encrypted text, an id), in the provider's own form.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        opaque: Value,
    },
}

/// An image by value. Adapters refuse remote addresses: the provider would fetch them, not Atlas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// For example `image/png`.
    pub mime: String,
    /// The bytes in Base64 (RFC 4648, with padding).
    pub data: String,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique in its answer. Adapters make one up for providers that send none.
    pub id: String,
    pub name: String,
    /// The parsed arguments. Text that is no JSON stays a string, so that the loop can tell the model about it.
    pub arguments: Value,
    /// What the provider wants back with the result (Gemini's thought signature), in the provider's own form.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub opaque: Value,
}

/// The result of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// [`ToolCall::id`].
    pub call: String,
    /// [`ToolCall::name`].
    pub name: String,
    /// Text; results that are JSON are its text.
    pub content: String,
    /// True if the call failed and `content` says why.
    pub error: bool,
}
