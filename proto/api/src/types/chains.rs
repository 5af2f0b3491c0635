//! Chains and their runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::jobs::JobTree;
use crate::words;

/// A run to start. Unknown members are ignored with a header `Warning`; those that look like `priority` are refused.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChainStart {
    /// a definition, also under the key `chain`; or the name of a stored chain
    #[schemars(extend("type" = ["object", "string"]))]
    pub chain: Value,
    /// the input of the chain; defaults to `{}`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Map<String, Value>>,
    /// the priority of its jobs; defaults to 0
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
}

/// A chain whose steps are looked at.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChainToCheck {
    /// a definition, also under the key `chain`; or the name of a stored chain
    #[schemars(extend("type" = ["object", "string"]))]
    pub chain: Value,
}

/// How the steps of a chain fit together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ChainCheck {
    /// the name of the chain
    pub name: String,
    /// name, agent and version of each step
    pub steps: Vec<Map<String, Value>>,
    /// for each step after the first: strategy, cost and confidence, the fields with their types, and notes
    pub joins: Vec<Map<String, Value>>,
    /// the model that converts data where a strategy is `llm_bridge`; empty if there is none
    pub model: String,
    /// what is wrong with the `input_map` of a step: the step's number from 0 (`step`), the `field`, what the map has for it (`given`), `message`,
    /// `hint`, and `level`: `error` if no run can pass the step, else `warning`
    pub problems: Vec<Map<String, Value>>,
}

/// The id of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ChainId {
    /// `chain-` and sixteen hexadecimal digits
    #[schemars(regex(pattern = r"^chain-[0-9a-f]{16}$"))]
    pub id: String,
}

/// One run of a chain. With `view=full` it has the members after `result`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ChainRun {
    /// its id
    pub id: String,
    /// the name of the chain
    pub chain_name: String,
    /// its status
    #[schemars(extend("enum" = words::STATUSES))]
    pub status: String,
    /// the input of the chain
    pub input_data: Value,
    /// Unix seconds
    pub created_at: f64,
    /// Unix seconds; 0.0 until it has ended
    pub completed_at: f64,
    /// number of the step that was started last; -1 before the first
    pub current_step: i64,
    /// number of steps of the chain
    pub total_steps: u64,
    /// success, output, error, failed_at, steps and mediation_summary; null until it has ended
    pub result: Option<Map<String, Value>>,
    /// revision of the stored chain; null if the definition came with the request
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-null" = true))]
    pub revision: Option<u64>,
    /// the definition as it was at the start
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<Map<String, Value>>,
    /// the priority of its jobs
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// number of changes
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// the steps that were started: name, agent, version, job_id, status, strategy
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_jobs: Option<Vec<Map<String, Value>>>,
    /// the step that failed: its number from 0 (`step`), `name`, `agent`, `job_id`, the `reason`, the places in its input or output that are wrong
    /// (`at`), and the `output` that its agent returned; null for what there is not
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-null" = true))]
    pub failure: Option<Map<String, Value>>,
    /// the job that it carries
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-null" = true))]
    pub job_id: Option<String>,
}

/// A run as in [ChainRun](#chainrun) with `view=full`, and the jobs of its steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ChainTree {
    #[serde(flatten)]
    #[schemars(with = "TreeRoot")]
    pub run: ChainRun,
    /// the jobs of its steps, oldest first; at most 1000 with those below them
    pub children: Vec<JobTree>,
}

/// What the schema of a tree says about its root: all else is that of a run.
#[derive(JsonSchema)]
struct TreeRoot {
    /// `chain-` and sixteen hexadecimal digits
    #[expect(dead_code, reason = "for the schema alone")]
    id: String,
}
