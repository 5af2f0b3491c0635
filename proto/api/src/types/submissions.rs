//! Jobs to submit, and their ids.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::problems::Problem;

/// The id of a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Id {
    /// `job-` and sixteen hexadecimal digits
    #[schemars(regex(pattern = r"^job-[0-9a-f]{16}$"))]
    pub id: String,
}

/// What every job to submit says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NewJob {
    /// the agent's name
    #[schemars(length(min = 1))]
    pub agent: String,
    /// any JSON; defaults to `{}`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// higher runs first; fractions are cut off, and text must be digits
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = ["integer", "number", "string", "boolean"]))]
    pub priority: Option<Value>,
    /// a requirement such as `^1.2.0`; defaults to the latest version
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// at most 64, of at most 1024 bytes each
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// execution timeout in seconds; defaults to the contract's
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.001, max = 1_000_000_000.0))]
    pub timeout: Option<f64>,
    /// earliest start, Unix seconds
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 253_402_300_799.0))]
    pub at: Option<f64>,
    /// most that its model calls may cost, US dollars; as text, such as `"0.01"`, it is exact
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = ["number", "string", "null"], "minimum" = 0))]
    pub budget_usd: Option<Value>,
    /// what happens to its questions to people: `fail`, `wait`, or `answer:` and a text; defaults to `fail`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions: Option<String>,
    /// whether it waits or fails while no registered node has what it needs; defaults to what its namespace says, or else `fail`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["wait", "fail", null]))]
    pub unsatisfiable: Option<String>,
    /// what it is about: one line that people see in lists
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 200))]
    pub title: Option<String>,
}

/// A job to submit. Unknown members are ignored with a header `Warning`; those that look like a member that Atlas for Python does not have are
/// refused.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Submission {
    #[serde(flatten)]
    pub job: NewJob,
    /// the conversation that it continues or begins; `temp` is never kept
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub conversation: Option<String>,
}

/// One job of many: a [Submission](#submission) with its own key, outside conversations. Unknown members are refused.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct BatchJob {
    #[serde(flatten)]
    pub job: NewJob,
    /// a repeat with the same key gets the first answer; must not begin with `~`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub idempotency_key: Option<String>,
}

/// Jobs to submit, queued in this order. The body may have eight times the size of a single submission, each job the size of one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// the jobs
    #[schemars(length(min = 1, max = 1_000))]
    pub jobs: Vec<BatchJob>,
}

/// Result for one job: one of these members.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct BatchResult {
    /// the job is queued, possibly by an earlier request with the same key
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^job-[0-9a-f]{16}$"))]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Problem>,
}

/// Results for many jobs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BatchResults {
    /// number of accepted jobs
    pub taken: u64,
    /// one for each job, in order
    pub results: Vec<BatchResult>,
    /// present if refused jobs may be accepted later: send them again after this many seconds
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u64>,
}
