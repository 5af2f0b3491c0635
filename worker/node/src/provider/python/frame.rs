//! What the host says to the worker.

use std::time::Duration;

use crate::attempt::SpawnCall;
use atlas_contract::{Contract, platform};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// A frame of the host. The kind determines which members are present.
#[derive(Debug, Deserialize)]
pub(super) struct Frame {
    #[serde(rename = "type")]
    pub(super) kind: Kind,
    pub(super) output: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) error: String,
    #[serde(default)]
    pub(super) stage: String,
    #[serde(default)]
    pub(super) level: String,
    #[serde(default)]
    pub(super) text: String,
    #[serde(default)]
    pub(super) execution_metadata: Map<String, Value>,
    /// Of an answer: processes that the agent keeps for its next job, by the ids that it sees.
    #[serde(default)]
    pub(super) keeps: Vec<i32>,
    /// The run that it answers.
    #[serde(default)]
    pub(super) number: u64,
    /// For a spawn: the run's own number of the call.
    #[serde(default)]
    pub(super) call: u64,
    /// Of a delta: the step that it belongs to, and how often its call was begun.
    #[serde(default)]
    pub(super) step: u32,
    #[serde(default, rename = "try")]
    pub(super) try_number: u32,
    #[serde(default)]
    pub(super) agent: String,
    /// Of a spawn: whether `agent` is the name of a skill.
    #[serde(default)]
    pub(super) skill: bool,
    #[serde(default)]
    pub(super) tool: String,
    pub(super) input: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) priority: i64,
    /// In seconds.
    #[serde(default)]
    pub(super) timeout: f64,
}

/// The kinds of frames. A kind that our host does not send counts as a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Ready,
    Failed,
    Result,
    Log,
    Progress,
    Delta,
    Spawn,
    Tool,
    Model,
    Leave,
    #[serde(other)]
    Other,
}

/// The tools of the platform that a contract asks for.
pub(super) fn tools(contract: &Contract) -> Vec<&'static str> {
    let requires = &contract.requires;
    let asked = |name: &&str| requires.platform_tools || requires.skills.iter().any(|skill| skill == name);
    platform::TOOLS.iter().map(|tool| tool.name).filter(asked).collect()
}

/// The spawn call of a run. The timeout is limited to one year. A missing or invalid timeout counts as zero.
pub(super) fn spawn_call(frame: Frame) -> SpawnCall {
    const LONGEST: Duration = Duration::from_secs(365 * 24 * 3_600);
    let timeout = Duration::try_from_secs_f64(frame.timeout.max(0.0)).unwrap_or(LONGEST).min(LONGEST);
    SpawnCall {
        call: frame.call,
        agent: frame.agent,
        skill: frame.skill,
        input: frame.input.unwrap_or_else(|| RawValue::NULL.to_owned()),
        priority: frame.priority,
        timeout,
        journaled: None,
    }
}

/// Converts Python's log levels to ours.
pub(super) fn level(word: &str) -> &'static str {
    match word {
        "debug" => "debug",
        "warning" => "warning",
        "error" | "critical" => "error",
        _ => "info",
    }
}
