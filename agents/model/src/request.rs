//! What a model is asked.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Messages, ModelTask};

/// One request to a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Request {
    /// The id that the provider knows the model by.
    pub model: String,
    /// What the model is asked to do.
    #[serde(default, skip_serializing_if = "ModelTask::is_chat")]
    pub task: ModelTask,
    /// Sent only if it is not empty.
    #[serde(default)]
    pub system: String,
    pub messages: Messages,
    /// Sent only if it is not empty.
    #[serde(default)]
    pub tools: Vec<Tool>,
    #[serde(default)]
    pub tool_choice: ToolChoice,
    /// Most tokens of the answer. None leaves it to the provider, where the provider allows that.
    pub max_tokens: Option<u32>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub top_k: Option<u32>,
    /// Texts that end the answer.
    #[serde(default)]
    pub stop: Vec<String>,
    /// The schema that the answer must match, for models that declare `json_schema`.
    pub output: Option<OutputSchema>,
    /// `low`, `medium` or `high`, for models that declare `reasoning`.
    pub reasoning_effort: Option<String>,
    /// The same for each try of one call. Sent where the provider takes one.
    pub idempotency_key: Option<String>,
    /// Whether the answer arrives in pieces.
    #[serde(default)]
    pub stream: bool,
    /// Members added to the provider's body as they are.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// Legal for the provider: `[a-zA-Z0-9_-]{1,64}`.
    pub name: String,
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
}

/// Whether the model has to call a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No calls, though tools are listed.
    None,
    /// At least one call.
    Required,
    /// This tool.
    Tool(String),
}

/// The form of the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputSchema {
    /// A name that some providers ask for: `[a-zA-Z0-9_-]{1,64}`.
    pub name: String,
    pub schema: Value,
}
