//! Frames of the event streams, and lines of logs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::is_default;
use super::jobs::Job;
use crate::words;

/// One change of a job; a frame of the event streams.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Change")]
pub struct JobChange {
    /// the job
    pub job_id: String,
    /// its agent
    pub agent_name: String,
    /// the status before
    #[schemars(extend("enum" = words::STATUSES))]
    pub old_status: String,
    /// the status after
    #[schemars(extend("enum" = words::STATUSES))]
    pub new_status: String,
    /// Unix seconds
    pub timestamp: f64,
    /// kind of change, one word; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("enum" = words::CHANGES))]
    pub change: String,
    pub job: Job,
}

/// One event. A job's has the members of `Change` as well.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClusterEvent {
    /// its number, without gaps over all kinds
    pub event: u64,
    /// what it is about
    #[schemars(extend("enum" = words::EVENT_KINDS))]
    pub kind: String,
    /// a job's or a run's id, the name of an agent, a node or an object; empty for the cluster
    pub name: String,
    /// Unix seconds
    pub timestamp: f64,
    /// what happened, a word: registered, deprecated, failing, retired or deleted; ready, down, cordoned, draining, failing, contested (another
    /// worker asked for its name) or removed; created, changed or deleted; started, step_started, step_ended or ended; configured; or a change of a
    /// job
    pub change: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<Job>,
    /// name, version, digest, labels, retired, deprecated, circuit
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Map<String, Value>>,
    /// name, epoch, health, cordoned, draining, labels, circuit; null if it was removed
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-null" = true))]
    pub node: Option<Map<String, Value>>,
    /// kind, namespace, uid, revision, labels, spec, by; as it was before if it was deleted
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<Map<String, Value>>,
    /// id, chain_name, namespace, status, current_step, total_steps, error
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Map<String, Value>>,
    /// the configuration that holds from here on
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Map<String, Value>>,
}

/// One log line or progress step of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Line {
    /// number of the attempt
    pub attempt: u64,
    /// its number within the attempt
    pub number: u64,
    /// Unix seconds
    pub at: f64,
    /// kind
    #[schemars(extend("enum" = ["log", "progress"]))]
    pub kind: String,
    /// the level of a log line
    pub level: String,
    /// the text
    pub text: String,
}
