//! Workers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agents::Circuit;

/// Deadline of a drain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    /// after this many seconds the worker returns its running jobs, which then run elsewhere; needs feature level 4. Without it, all jobs finish
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 2_592_000.0))]
    pub deadline_s: Option<f64>,
}

/// Labels of a node to change, at most 64 at once; needs feature level 4.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelRequest {
    /// labels to set; keys and values have at most 1024 bytes, keys contain no `=` and do not end with `-`. A node has at most 64 labels from
    /// operators
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub set: Option<BTreeMap<String, String>>,
    /// keys of labels to remove; a label of the worker with the same key becomes effective again
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub remove: Option<Vec<String>>,
}

/// One worker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Node {
    /// its name
    pub id: String,
    /// its incarnation
    pub epoch: u64,
    /// whether it has a session
    #[schemars(extend("enum" = ["ready", "down"]))]
    pub health: String,
    /// whether it gets no new leases
    pub cordoned: bool,
    /// whether it is being emptied
    pub draining: bool,
    /// Unix seconds by which its worker returns running jobs; null without a deadline
    pub drain_ends_at: Option<f64>,
    /// its cores
    pub cores: u64,
    /// free cores
    pub cores_free: u64,
    /// its memory
    pub memory_bytes: u64,
    /// free memory
    pub memory_bytes_free: u64,
    /// its architecture
    pub arch: String,
    /// its GPUs
    pub gpus: Vec<Gpu>,
    /// its devices
    pub devices: Vec<String>,
    /// whether jobs' requirements are checked against its hardware
    pub hardware_checks: bool,
    /// maximum number of concurrent jobs that run a process
    pub places: u64,
    /// free concurrency
    pub places_free: u64,
    /// maximum number of concurrent jobs of `llm` agents
    pub llm_places: u64,
    /// free concurrency for `llm` agents
    pub llm_places_free: u64,
    /// number of leases
    pub running: u64,
    /// number of warm slots
    pub warm: u64,
    /// effective labels: those of its worker, overridden by those of operators
    pub labels: BTreeMap<String, String>,
    /// labels set by operators
    pub operator_labels: BTreeMap<String, String>,
    /// Unix seconds
    pub registered_at: f64,
    pub circuit: Circuit,
    /// the latest worker that was refused because it asked for this name while the node's own worker had it: its `address`, the address of the
    /// `holder`, and `at`, Unix seconds
    pub rival: Option<Rival>,
}

/// One GPU of a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct Gpu {
    pub index: u64,
    pub uuid: String,
    pub vendor: String,
    pub model: String,
    pub memory_bytes: u64,
    pub free_bytes: u64,
    pub mig_profile: String,
    pub healthy: bool,
}

/// A worker that was refused because another one has its name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct Rival {
    pub address: String,
    /// the address of the node's own worker
    pub holder: String,
    /// Unix seconds
    pub at: f64,
}

/// The request is recorded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Accepted")]
pub struct Acceptance {
    /// true
    pub accepted: bool,
}

/// The object is removed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Removed")]
pub struct Removal {
    /// true
    pub removed: bool,
}
