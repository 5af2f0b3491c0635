//! Why a job waits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::is_default;

/// Why a job waits. A job that has started has an empty `starts_if` and no estimate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Explained")]
pub struct Explanation {
    /// `job-` and sixteen hexadecimal digits
    pub id: String,
    /// status of the job
    pub status: String,
    /// reason for the status, one word, as in [Job](#job)
    pub reason: String,
    /// what it is waiting for, a sentence
    pub waiting_for: String,
    /// when it was submitted, Unix seconds
    pub since: f64,
    /// its position among the waiting jobs with the same demand, from 1; absent after 1000, or if it is not in the queue
    #[serde(skip_serializing_if = "is_default")]
    pub position: u64,
    /// number of waiting jobs with the same demand; absent if it is not in the queue
    #[serde(skip_serializing_if = "is_default")]
    pub class_jobs: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// ways to start it, the least effort first; at most 5
    pub starts_if: Vec<Counterfactual>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacking: Option<Shortfall>,
}

/// What a job needs that no node has, if it failed for that: of the node that lacks the least.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Lacking")]
pub struct Shortfall {
    /// the node
    pub node: String,
    /// what it lacks, in words
    pub short: Vec<String>,
}

/// When a waiting job will start if nothing but time passes, from the durations of the latest jobs of its agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Estimate {
    /// whether there is an estimate
    pub known: bool,
    /// seconds until it starts; median
    #[serde(skip_serializing_if = "is_default")]
    pub seconds: f64,
    /// with a probability of 90 % it takes longer
    #[serde(skip_serializing_if = "is_default")]
    pub seconds_low: f64,
    /// with a probability of 90 % it takes less
    #[serde(skip_serializing_if = "is_default")]
    pub seconds_high: f64,
    /// why there is no estimate
    #[serde(skip_serializing_if = "is_default")]
    pub says: String,
}

/// Changes that together start a waiting job; the planner confirmed it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Counterfactual {
    /// the changes as a sentence, without the `if`
    pub says: String,
    /// the changes, each with a `kind`: `time` (`until`), `wake`, `allow`, `resolve`, `end` (`jobs`, and the number of `other_jobs` of other
    /// namespaces), `others_wait`, `priority` (`at_least`), `limit` (`at_least`), `namespace_limit` (`at_least`), `key_limit` (`at_least`), `rate`
    /// (`until`), `resume` (`agent`, `version`), `probe` (`until`), `open` (`node`, `now`), `label` (`node`, `labels`), `room` (`node` and the
    /// additional free amounts), `register` (what another node must have), `ask` (the largest amount that the contract may state)
    pub changes: Vec<Map<String, Value>>,
}
