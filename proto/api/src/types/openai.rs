//! The bodies of the paths below `/v1/`, which are OpenAI's. What the members mean is in `docs/agents/openai.md`; these types say which there are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A request for the next message of a conversation. It may have more members of OpenAI's interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChatCompletionRequest {
    /// A model of the namespace, an agent or a chain.
    pub model: String,
    /// What was said so far, the oldest first.
    pub messages: Vec<Map<String, Value>>,
    /// Whether the answer arrives in chunks.
    #[serde(default)]
    pub stream: Option<bool>,
}

/// The next message of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = {}))]
pub struct ChatCompletion {
    /// `chatcmpl-` and the id of the job.
    pub id: String,
    pub object: String,
    /// Unix time in seconds.
    pub created: i64,
    /// The model as the request names it.
    pub model: String,
    /// One message, and why the model stopped.
    pub choices: Vec<Map<String, Value>>,
}

/// A request for a text that goes on from a prompt. It may have more members of OpenAI's interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompletionRequest {
    /// A model of the namespace, an agent or a chain.
    pub model: String,
    /// A text.
    pub prompt: Value,
    /// Whether the answer arrives in chunks.
    #[serde(default)]
    pub stream: Option<bool>,
}

/// A text that goes on from a prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = {}))]
pub struct Completion {
    /// `cmpl-` and the id of the job.
    pub id: String,
    pub object: String,
    /// Unix time in seconds.
    pub created: i64,
    /// The model as the request names it.
    pub model: String,
    /// One text, and why the model stopped.
    pub choices: Vec<Map<String, Value>>,
}

/// A request for the vectors of texts. It may have more members of OpenAI's interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmbeddingsRequest {
    /// A model of the namespace of the type `embedding`.
    pub model: String,
    /// A text, or a list of texts.
    pub input: Value,
}

/// The vectors of texts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = {}))]
pub struct Embeddings {
    pub object: String,
    /// One vector for each text, in their order.
    pub data: Vec<Map<String, Value>>,
    /// The model as the request names it.
    pub model: String,
    /// The tokens of the texts.
    pub usage: Map<String, Value>,
}

/// What the caller may name as a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = {}))]
pub struct UsableModel {
    /// What a request names.
    pub id: String,
    pub object: String,
    /// Unix time in seconds.
    pub created: i64,
    /// The provider of a model, or the namespace of an agent or a chain.
    pub owned_by: String,
}

/// All that the caller may name as a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = {}))]
pub struct UsableModels {
    pub object: String,
    pub data: Vec<UsableModel>,
}

/// A request for a response. It may have more members of OpenAI's interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseRequest {
    /// A model of the namespace, an agent or a chain.
    pub model: String,
    /// A text, or a list of items.
    pub input: Value,
    /// Whether the response arrives as events.
    #[serde(default)]
    pub stream: Option<bool>,
    /// Whether the response is made also if its client goes away.
    #[serde(default)]
    pub background: Option<bool>,
    /// Whether it can be read later.
    #[serde(default)]
    pub store: Option<bool>,
    /// The response that this one goes on from.
    #[serde(default)]
    pub previous_response_id: Option<String>,
}

/// A response: the output of a model as items.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = {}))]
pub struct ModelResponse {
    /// `resp_` and the id of the job.
    pub id: String,
    pub object: String,
    /// `queued`, `in_progress`, `completed`, `incomplete`, `failed` or `cancelled`.
    pub status: String,
    /// The model as the request names it.
    pub model: String,
    /// Messages, tool calls and reasoning, in the order in which the model wrote them.
    pub output: Vec<Map<String, Value>>,
}

/// A response that was deleted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = {}))]
pub struct DeletedResponse {
    pub id: String,
    pub object: String,
    pub deleted: bool,
}

/// The items that a response was asked with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = {}))]
pub struct InputItems {
    pub object: String,
    pub data: Vec<Map<String, Value>>,
}

/// Why a request below `/v1/` was refused, in OpenAI's form. The header `Atlas-Error-Code` has our code where there is one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ApiError {
    pub error: ApiErrorDetail,
}

/// What is wrong.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct ApiErrorDetail {
    /// For people.
    pub message: String,
    /// A class of errors, such as `invalid_request_error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The member of the request that is refused.
    pub param: Option<String>,
    /// What programs compare with, such as `model_not_found`.
    pub code: Option<String>,
}
