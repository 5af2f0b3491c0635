//! The members of a job that this program prints.

use atlas_cli::Failure;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A job of the API; a missing member gets its default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Job {
    pub(super) id: String,
    pub(super) agent_name: String,
    pub(super) status: String,
    pub(super) output_data: Option<Value>,
    pub(super) error: String,
    pub(super) priority: i64,
    pub(super) warmup_ms: f64,
    pub(super) execution_ms: f64,
}

/// Reads an answer of the API.
pub(super) fn read<T: DeserializeOwned>(value: &Value) -> Result<T, Failure> {
    T::deserialize(value).map_err(Failure::answer)
}
