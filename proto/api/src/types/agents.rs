//! Agents, their versions and packages.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::is_default;
use crate::words;

/// One agent version. Lists have its first four members, and with `view=full` those up to `revision`; alone it has all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Agent {
    /// its name
    pub name: String,
    /// three numbers
    pub version: String,
    /// from its contract
    pub description: String,
    /// capabilities
    pub capabilities: Vec<String>,
    /// what it is; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("enum" = words::AGENT_KINDS))]
    pub kind: String,
    /// how it runs; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("enum" = words::PROVIDERS))]
    pub provider: String,
    /// its package; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub digest: String,
    /// the package's size; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub package_bytes: u64,
    /// Unix seconds; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub registered_at: f64,
    /// whether it is retired; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub retired: bool,
    /// deprecation message; null if not deprecated; with `view=full`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-null" = true))]
    pub deprecated: Option<String>,
    /// from its contract; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub labels: BTreeMap<String, String>,
    /// whether jobs start on it although attempts fail; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub circuit: Circuit,
    /// who registered its package; null if that is not known; with `view=full`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-null" = true))]
    pub registered_by: Option<String>,
    /// the number of its package, from 1 on; with `view=full`
    #[serde(skip_serializing_if = "is_default")]
    pub revision: u64,
    /// its packages, that of now first; at most 11; not in lists
    #[serde(skip_serializing_if = "is_default")]
    pub revisions: Vec<AgentRevision>,
    /// input schema, a JSON Schema; not in lists
    #[serde(skip_serializing_if = "is_default")]
    pub input_schema: Value,
    /// output schema, a JSON Schema; not in lists
    #[serde(skip_serializing_if = "is_default")]
    pub output_schema: Value,
    /// the whole contract, normalised; not in lists
    #[serde(skip_serializing_if = "is_default")]
    pub contract: Map<String, Value>,
}

/// A package that an agent version has or had.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentRevision {
    /// its number, from 1 on
    pub revision: u64,
    /// the package
    pub digest: String,
    /// the package's size
    pub package_bytes: u64,
    /// Unix seconds
    pub registered_at: f64,
    /// who registered it; null if that is not known
    pub registered_by: Option<String>,
    /// the revision whose package it has again; null if it is the first with its package
    pub copy_of: Option<u64>,
}

/// Rollback of a version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RollbackRequest {
    /// the revision to go back to; the one before the package of now by default
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// Result of a rollback.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RolledBack {
    /// the agent
    pub name: String,
    /// its version
    pub version: String,
    /// the package it has now
    pub digest: String,
    /// the revision that it went back to
    pub from: u64,
    /// the number that the package has now
    pub revision: u64,
}

/// Result of a registration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Registered")]
pub struct Registration {
    /// the agent or the skill
    pub name: String,
    /// its version
    pub version: String,
    /// its package
    pub digest: String,
    /// false if the same package was already registered
    pub changed: bool,
}

/// Result of a deletion.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Deleted")]
pub struct Deletion {
    /// true
    pub deleted: bool,
}

/// Result of a retirement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Retired")]
pub struct Retirement {
    /// true
    pub retired: bool,
}

/// Deprecation of a version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeprecateRequest {
    /// message, at most 1024 bytes
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub message: Option<String>,
    /// false removes the deprecation
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<bool>,
}

/// Deprecation of a version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Deprecated")]
pub struct Deprecation {
    /// message; null if not deprecated
    pub deprecated: Option<String>,
}

/// Whether jobs start on an agent version or a node although attempts fail there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Circuit {
    /// `closed`: as usual; `open`: none, for a pause; `half_open`: one, which probes it
    #[schemars(extend("enum" = ["closed", "open", "half_open"]))]
    pub state: String,
    /// failures in a row
    pub failures: u64,
    /// Unix seconds at which it opened; null while it is closed
    pub since: Option<f64>,
    /// seconds without a start after the latest failure; null while it is closed
    pub pause_s: Option<u64>,
}
