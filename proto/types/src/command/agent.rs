//! Commands about agent versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{AgentKind, AgentName, Digest, Payload, RunSpec, Version};

/// Publishes an agent version. Jobs keep what they are pinned to, even if another package replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterAgent {
    pub name: AgentName,
    pub version: Version,
    /// Its package.
    pub digest: Digest,
    /// Size of the package.
    pub package_bytes: u64,
    /// Agent or orchestrator.
    pub kind: AgentKind,
    /// For search.
    pub capabilities: Vec<String>,
    /// The normalised contract, JSON.
    pub contract: Payload,
    /// How its jobs run.
    pub spec: Arc<RunSpec>,
    /// Free-form labels.
    pub labels: BTreeMap<String, String>,
    /// The command is refused if the version has another package. Otherwise that one is replaced, and kept as a revision.
    pub immutable: bool,
}

/// Takes an agent version out of service; jobs that have it pinned finish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetireAgent {
    pub name: AgentName,
    pub version: Version,
}

/// Says that new jobs should not use an agent version, or removes that mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeprecateAgent {
    pub name: AgentName,
    pub version: Version,
    /// The message; none removes the mark.
    pub why: Option<Arc<str>>,
}

/// Closes the circuit of an agent version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeAgent {
    pub name: AgentName,
    pub version: Version,
}

/// Forgets a retired agent version that no job refers to which has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteAgent {
    pub name: AgentName,
    pub version: Version,
}
