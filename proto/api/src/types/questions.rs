//! Questions of jobs to people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A question of a job to people.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Question")]
pub struct JobQuestion {
    /// `question-` and sixteen hexadecimal digits
    pub id: String,
    /// the job that asks
    pub job: String,
    /// the step of the job's journal that asks; 0 if a policy asks
    pub step: u64,
    /// the order in which questions were asked
    pub number: u64,
    /// what kind of answer it has
    #[schemars(extend("enum" = ["approve", "choose", "confirm", "text", "form"]))]
    pub kind: String,
    /// the question in words
    pub prompt: String,
    /// what can be chosen
    pub options: Vec<String>,
    /// the answer is a list of options
    pub many: bool,
    /// another text than the options is an answer
    pub other: bool,
    /// of a form: the JSON Schema of the answer
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// who may answer; empty for everybody with the right
    pub answerers: Vec<String>,
    /// whether it is open, or how it ended
    #[schemars(extend("enum" = ["open", "answered", "defaulted", "expired", "cancelled"]))]
    pub status: String,
    /// Unix seconds
    pub asked_at: f64,
    /// when its time passes, Unix seconds
    pub deadline: Option<f64>,
    /// the answer when its time has passed
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// the answer; null without one
    pub answer: Value,
    /// who answered
    pub answered_by: String,
    /// Unix seconds
    pub ended_at: Option<f64>,
    /// if a policy asks: `policy`, `rule`, the `role` that may answer (empty for everybody with the right), `self`: whether who submitted the job may
    /// answer, and `who` may answer, in words
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Map<String, Value>>,
}

/// The answer to a question: exactly one member.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct QuestionAnswer {
    /// a text, a list of strings, `yes` or `no`, or a value that satisfies the schema, as the question asks; at most 16 KiB
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// the answer in words: several options with commas between them, a form as JSON
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub text: Option<String>,
}
