//! What the host says to the worker, and what it is told of a job.

use std::time::Duration;

use crate::attempt::{SpawnCall, Work};
use crate::provider::exec::traceparent;
use crate::provider::platform::skill_names;
use atlas_contract::{Contract, Replay, platform};
use atlas_types::SpawnRule;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// What a job's context says. Absent members have the values that `AgentContext._begin` gives them, so that a job without anything special
/// has a short frame.
#[derive(Debug, Serialize)]
pub(super) struct JobContext<'a> {
    job_id: String,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    spawn_allowed: bool,
    #[serde(skip_serializing_if = "is_default")]
    depth: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_depth: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skills: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_model: Option<&'a str>,
    #[serde(skip_serializing_if = "is_default")]
    durable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<&'static str>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl<'a> JobContext<'a> {
    /// The depth to which jobs spawn each other if the context states none.
    const DEPTH_MAX: u32 = 3;

    pub(super) fn of(work: &'a Work, model: &'a Result<String, String>) -> Self {
        let assignment = &work.assignment;
        let metadata = serde_json::from_slice::<&RawValue>(&assignment.metadata).ok();
        // A controller that sends no rule does not support spawning.
        let rule = assignment.spawn.unwrap_or(SpawnRule { depth: 0, depth_max: Self::DEPTH_MAX, permitted: false });
        Self {
            job_id: assignment.job.to_string(),
            attempt: assignment.attempt.0,
            traceparent: traceparent(assignment),
            spawn_allowed: rule.permitted,
            depth: rule.depth,
            max_depth: Some(rule.depth_max).filter(|&max| max != Self::DEPTH_MAX),
            metadata: metadata.filter(|metadata| metadata.get() != "{}"),
            tools: tools(&work.agent.contract),
            skills: skill_names(&work.agent),
            model: model.as_deref().ok(),
            no_model: model.as_ref().err().map(String::as_str),
            durable: work.agent.contract.durable,
            replay: (work.agent.contract.replay != Replay::Normal).then_some(work.agent.contract.replay.as_str()),
        }
    }
}

/// A frame of the host. The kind determines which members are present.
#[derive(Debug, Deserialize)]
pub(super) struct Frame {
    #[serde(rename = "type")]
    pub(super) kind: Kind,
    pub(super) output: Option<Box<RawValue>>,
    /// How many of the records that it was told at its beginning the run has taken.
    #[serde(default)]
    pub(super) claimed: usize,
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
    Error,
    Log,
    Progress,
    Delta,
    Spawn,
    Tool,
    Model,
    Leave,
    /// It has left the run, whose job was parked.
    Left,
    Call,
    Made,
    Forget,
    #[serde(other)]
    Other,
}

/// What comes first of a frame of a durable program: the rest is read as what it is.
#[derive(Debug, Deserialize)]
pub(super) struct Beginning {
    #[serde(rename = "type")]
    pub(super) kind: Kind,
    #[serde(default)]
    pub(super) number: u64,
}

/// The tools of the platform that a contract asks for.
fn tools(contract: &Contract) -> Vec<&'static str> {
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
