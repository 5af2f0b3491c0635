//! What a turn is fixed to.

use atlas_model::{NanoDollars, Prices, Tool};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{AutoContinue, TodoList, ToolRule, python};

/// What a turn is fixed to before it starts. A driver that records a turn records its settings first. The default is the
/// behaviour of Atlas for Python.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The id that the provider knows the model by.
    pub model: String,
    pub system: String,
    /// The tools that the model may call. Their names are unique.
    pub tools: Vec<OfferedTool>,
    pub sampling: Sampling,
    pub format: Format,
    pub limits: Limits,
    /// True if the model accepts images.
    pub vision: bool,
    /// True if the provider can be asked for JSON that matches a schema.
    pub json_schema: bool,
    /// True if answers are requested in pieces.
    pub stream: bool,
    /// True if results of failed tools are marked as errors. Atlas for Python only says so in their text.
    pub mark_errors: bool,
    /// True if inputs and results are UTF-8 in messages. Atlas for Python escapes what is not ASCII, which makes six characters of one
    /// in Chinese; a turn that was recorded so is replayed so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub utf8: bool,
    /// True if an answer is used by why the model stopped: one that was refused, cut, empty or broken off is no success. Thoughts before
    /// JSON and arguments that are JSON in a text are read, and what an answer costs is estimated if the provider reports no tokens. Atlas for
    /// Python takes every answer as it is; a turn that was recorded so is replayed so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub judged: bool,
    /// None if the model's prices are unknown.
    pub prices: Option<Prices>,
    /// The prices of the models that may answer instead, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallback_prices: Vec<Option<Prices>>,
    /// The todo list of the agent; none if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// What happens to calls of some tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<ToolRule>,
    /// True if a text as output has the texts of all answers, a line apart, and not only the last one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all_texts: bool,
}

impl Settings {
    /// A value in a message.
    pub(crate) fn told(&self, value: &Value) -> String {
        if self.utf8 { python::text(value) } else { python::dumps(value) }
    }
}

/// The todo list that a turn starts with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    pub continuation: AutoContinue,
    /// What is left of earlier turns.
    pub list: TodoList,
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OfferedTool {
    /// The tool's own name. The one in `tool` is legal for the provider, and can differ.
    pub name: String,
    pub tool: Tool,
}

/// How the model chooses its words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling {
    /// Most tokens of one answer. None leaves it to the provider.
    pub max_tokens: Option<u32>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub top_k: Option<u32>,
    /// Texts that end an answer.
    pub stop: Vec<String>,
    /// `low`, `medium` or `high`.
    pub reasoning_effort: Option<String>,
    /// Members added to the provider's body as they are.
    pub extra: Map<String, Value>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            max_tokens: Some(4_096),
            temperature: None,
            top_p: None,
            top_k: None,
            stop: Vec::new(),
            reasoning_effort: None,
            extra: Map::new(),
        }
    }
}

/// The form of the output.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// The answer parsed as JSON; an answer that is no JSON becomes `{"result": TEXT}`.
    #[default]
    Json,
    /// Always `{"result": TEXT}`.
    Text,
    /// JSON that matches a schema. An answer that does not match is returned to the model with the reasons.
    Schema {
        /// A name for the schema that some providers require.
        name: String,
        schema: Value,
        /// How often an answer is returned to the model. If the last one does not match either, it is the output.
        repairs: u32,
    },
}

/// Bounds of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Most requests to the model.
    pub requests: u32,
    /// What the output is once they are used up.
    pub at_limit: AtLimit,
    /// The number of equal rounds of tools in a row that ends the turn. Zero disables the guard.
    pub repeats: u32,
    /// The number of equal calls in a row that are made; the next one is refused. Zero disables the guard.
    #[serde(skip_serializing_if = "is_zero")]
    pub same_calls: u32,
    /// Most tool calls of one answer.
    pub calls: usize,
    /// Most tool calls at the same time. One means in order.
    pub parallel: usize,
    /// Most bytes of a tool's result that the model gets.
    pub result_bytes: usize,
    /// The most that the turn may cost. A call is refused if the price of a model that may answer is unknown.
    pub budget: Option<NanoDollars>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests: 5,
            at_limit: AtLimit::Error,
            repeats: 0,
            same_calls: 0,
            calls: 128,
            parallel: 1,
            result_bytes: 64 << 10,
            budget: None,
        }
    }
}

/// The output of a turn whose requests are used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtLimit {
    /// An error and the names of the used tools, as in Atlas for Python.
    #[default]
    Error,
    /// The text of the last answer, with an explanation.
    Partial,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}
