//! Health and statistics.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words;

/// Numbers of jobs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Health {
    /// `ok`
    #[schemars(extend("const" = "ok"))]
    pub status: String,
    /// waiting jobs
    pub pending: u64,
    /// running jobs
    pub running: u64,
    /// free places in the queue
    pub capacity_remaining: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Hardware>,
}

/// Hardware declared by operators, over all nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Hardware {
    /// GPUs
    pub total_gpus: u64,
    /// free GPUs
    pub free_gpus: u64,
    /// the memory of each
    pub gpu_vram_gb: Vec<f64>,
    /// memory
    pub total_memory_gb: f64,
    /// free memory
    pub free_memory_gb: f64,
    /// cores
    pub total_cpu_cores: u64,
    /// free cores
    pub free_cpu_cores: u64,
    /// `any` where nodes differ
    pub architecture: String,
    /// allocations of jobs
    pub allocations: Vec<Allocation>,
}

/// What one job has of the hardware.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct Allocation {
    pub slot_id: String,
    pub gpu_devices: Vec<u64>,
    pub memory_gb: f64,
    pub cpu_cores: u64,
}

/// The controller can serve requests, or with `alone=true` is the only member that runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Ready {
    /// false while it is alone and cannot serve requests
    pub ready: bool,
}

/// The program and its cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Version {
    /// version of the program
    pub version: String,
    /// how it was started
    #[schemars(extend("enum" = words::MODES))]
    pub mode: String,
    /// highest supported feature level
    pub level: u64,
    /// 32 hexadecimal digits
    pub cluster_id: String,
    /// data directory; in development mode only
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_dir: Option<String>,
}

/// Statistics of all agents together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GlobalFigures {
    /// jobs that changed their status
    pub total_jobs: u64,
    /// share of failed jobs
    pub error_rate: f64,
    /// share of retries
    pub retry_rate: f64,
    /// share of completed jobs that ran in a warm slot
    pub warm_hit_rate: f64,
    /// jobs that ended in the last minute
    pub throughput_per_min: u64,
    /// median of the execution time
    pub latency_p50_ms: f64,
    /// 95th percentile
    pub latency_p95_ms: f64,
    /// 99th percentile
    pub latency_p99_ms: f64,
}

/// Statistics of one agent, over the last thousand jobs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentFigures {
    /// number of jobs by status
    pub jobs_by_status: BTreeMap<String, u64>,
    /// jobs that changed their status
    pub total_jobs: u64,
    /// share of failed jobs
    pub error_rate: f64,
    /// jobs that ended in the last minute
    pub throughput_per_min: u64,
    /// median of the execution time
    pub latency_p50_ms: f64,
    /// 95th percentile
    pub latency_p95_ms: f64,
    /// 99th percentile
    pub latency_p99_ms: f64,
    /// share of completed jobs that ran in a warm slot
    pub warm_hit_rate: f64,
    /// number of retries
    pub total_retries: u64,
}

/// Statistics of all agents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Figures")]
pub struct AllFigures {
    pub global: GlobalFigures,
    /// by name
    pub agents: BTreeMap<String, AgentFigures>,
}
