//! Orchestrators.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The selected orchestrator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Orchestrator {
    /// its name; `DefaultOrchestrator` is the one that allows all jobs
    pub name: String,
    /// whether it is the default one
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["default", "custom"]))]
    pub kind: String,
}

/// The orchestrator to select. Unknown members are ignored with a header `Warning` beside a name, and refused without one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrchestratorName {
    /// the name of an agent of the type `orchestrator`; without a name, the default one is selected
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What was selected.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SelectedOrchestrator {
    /// its name
    pub orchestrator: String,
}
