//! What policies decide.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::words;

/// What policies leave the agent of a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LeftPermissions {
    /// the permissions of its contract, lowered by policies; empty if its version is not registered any more
    pub permissions: Map<String, Value>,
    /// the policies that count in the namespace
    pub policies: Vec<String>,
}

/// An operation on a registered agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyQuestion {
    /// the agent
    pub agent: String,
    /// a requirement such as `^1.2.0`; defaults to the latest
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// what is done; defaults to `submit`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["deploy", "submit", null]))]
    pub operation: Option<String>,
    /// the input of the job; defaults to an empty object
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// the priority of the job
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub priority: Option<i64>,
}

/// What policies decide.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PolicyAnswer {
    /// whether no policy denies it
    pub allowed: bool,
    /// what happens to it: `ask` if it waits for an approval
    #[schemars(extend("enum" = words::EFFECTS))]
    pub effect: String,
    /// what is done
    #[schemars(extend("enum" = ["deploy", "submit"]))]
    pub operation: String,
    /// who asks
    pub principal: String,
    /// the agent
    pub agent: String,
    /// the version
    pub version: String,
    /// what each policy of the namespace decides, by name
    pub decisions: Vec<PolicyDecision>,
    /// the permissions of the contract, lowered by policies
    pub permissions: Map<String, Value>,
    /// the policies that count in the namespace
    pub policies: Vec<String>,
}

/// What one policy decides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct PolicyDecision {
    /// the policy
    pub policy: String,
    /// the rule that decided; null if none did
    pub rule: Option<String>,
    /// whether it does not deny
    pub allowed: bool,
    /// what it decided
    #[schemars(extend("enum" = words::EFFECTS))]
    pub effect: String,
    /// why, for people
    pub why: Option<String>,
}

/// A security policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Policy(pub Map<String, Value>);
