//! What jobs did.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a completed or failed job did, or a run of a chain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Trace {
    /// the id of the job or of the run
    pub trace_id: String,
    /// the job; of a run, the job that it carries, or empty
    pub job_id: String,
    /// the agent; of a run, the chain
    pub agent_name: String,
    /// the status; that of a job is `completed` or `failed`
    #[schemars(extend("enum" = ["completed", "failed", "pending", "running", "cancelled"]))]
    pub status: String,
    /// start-up of the agent; 0 in a used slot
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup_ms: Option<f64>,
    /// how long the agent ran
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_ms: Option<f64>,
    /// Unix seconds; 0 if it did not start
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<f64>,
    /// Unix seconds
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<f64>,
    /// tokens sent to models
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// tokens that models generated
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// their sum
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// the model that was called last; empty if none was
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// cost of the tokens, six decimals
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_cost_usd: Option<f64>,
    /// the job that spawned it, or the run whose step it is
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_trace_id: Option<String>,
    /// the chain whose step it is
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain_name: Option<String>,
    /// its position in the chain from 0; -1 outside a chain
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_index: Option<i64>,
    /// results of the checks in the agent's eval.yaml
    pub eval_results: Vec<EvalResult>,
    /// the job's metadata without internal members
    pub metadata: Map<String, Value>,
    /// of a run: why it failed
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// of a run: the step that failed, from 0; -1 if none did
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<i64>,
    /// of a run: the traces of the jobs of its steps that have ended
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<Trace>>,
}

/// The result of one check.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct EvalResult {
    /// the check
    pub name: String,
    /// whether it passed
    pub passed: bool,
    /// what passes
    pub expected: Value,
    /// the value of the output
    pub actual: Value,
    /// why it did not pass
    pub message: String,
}
