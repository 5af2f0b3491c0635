//! How a turn is recorded in the journal of its job. The driver writes these records; a replay reads them.

use std::collections::BTreeMap;

use atlas_model::{Answer, CallError, CallErrorKind, ToolCall, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Key, Outcome, Settings, ToolReturn};

/// The level of the agent loop and of its records. It grows with each change after which a recorded job would go on
/// differently.
pub const LEVEL: u32 = 1;

/// The key of step 0. What a job is fixed to depends on its worker, so the key says only what the step is.
pub const START: Key = Key(*b"llm agent: start");

/// The key of the step with which a fork goes on: what the job is fixed to from there on.
pub const AGAIN: Key = Key(*b"llm agent: again");

/// The tool that runs an agent and waits for it. Like an agent that is a tool, it spawns a job.
pub const RUN: &str = "atlas.exec.run";

/// What a replay reads of the outcome of [`START`] and [`AGAIN`]. It has more members, which say how models and tools are reached.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct FixedSettings {
    pub level: u32,
    pub settings: Settings,
    /// What answers the calls of each tool, by its own name: `"agent"`, `"skill"`, or another source.
    #[serde(default)]
    pub tools: BTreeMap<String, Value>,
    /// The prompt, if it is not the one of the input.
    #[serde(default)]
    pub prompt: Option<String>,
}

impl FixedSettings {
    /// What a call waits for if it is a step of its own.
    pub fn own_step(&self, call: &ToolCall) -> Option<OwnStep> {
        match self.tools.get(&call.name).and_then(Value::as_str) {
            _ if call.name == RUN => Some(OwnStep::Job),
            Some("agent" | "skill") => Some(OwnStep::Job),
            Some("user") => Some(OwnStep::Answer),
            Some("helper") => Some(OwnStep::Helper),
            Some(_) => None,
            None => self.is_of_server(call).then_some(OwnStep::Server),
        }
    }

    /// Whether a call goes to an MCP server.
    fn is_of_server(&self, call: &ToolCall) -> bool {
        self.tools.get(&call.name).is_some_and(|of| of.get("server").is_some() || of.get("meta").is_some())
    }

    /// Whether a call runs a skill.
    pub fn is_skill(&self, call: &ToolCall) -> bool {
        self.tools.get(&call.name).is_some_and(|of| of == "skill")
    }
}

/// The outcome of a model call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerOutcome {
    /// The place of the model that answered; 0 is the first one, others are its fallbacks.
    #[serde(default, skip_serializing_if = "is_first")]
    pub place: usize,
    #[serde(flatten)]
    pub answer: Answer,
}

/// The outcome of a model call that was paid for, and whose answer could not be recorded. The call has failed, and is not made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnusableAnswer {
    /// Why.
    pub unusable: String,
    /// The model that answered.
    #[serde(default)]
    pub model: String,
    #[serde(default)]
    pub usage: Usage,
}

impl UnusableAnswer {
    /// The failure of the call.
    pub fn failure(&self) -> CallError {
        CallError::new(CallErrorKind::Answer, self.unusable.as_str())
    }
}

fn is_first(place: &usize) -> bool {
    *place == 0
}

/// What a tool call waits for that is not a step with calls of the platform. The job may park while it waits for jobs and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnStep {
    /// The end of a job that it spawns.
    Job,
    /// The answer of people.
    Answer,
    /// MCP servers.
    Server,
    /// The helpers of the agent.
    Helper,
    /// The permission of a person ([`Permits`](crate::Permits)).
    Guard,
}

/// A step of a round of tools.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RoundStep<'a> {
    /// These calls are made together. The outcome of the step is the list of their [`ToolReturn`].
    Together { key: Key, calls: &'a [ToolCall] },
    /// These calls of MCP servers are made together: as a [`ServerRound`], between the steps of [`server_intent`] and [`server_counts`],
    /// each of which there may be.
    Servers { key: Key, calls: &'a [ToolCall] },
    /// This call spawns a job.
    Spawn(&'a ToolCall),
    /// This call asks people.
    Ask(&'a ToolCall),
    /// This call is about helpers, or messages of the team. Its outcome is [`HelpOutcome`].
    Help(&'a ToolCall),
    /// Before this call people are asked. It is done only if they do not allow it.
    Guard(&'a ToolCall),
}

/// The step of a round that comes after the first `done` calls. None if all are done.
pub fn round_step(
    round: Key,
    calls: &[ToolCall],
    done: usize,
    own_step: impl Fn(&ToolCall) -> Option<OwnStep>,
) -> Option<RoundStep<'_>> {
    let rest = calls.get(done..)?;
    let first = rest.first()?;
    match own_step(first) {
        Some(OwnStep::Job) => return Some(RoundStep::Spawn(first)),
        Some(OwnStep::Answer) => return Some(RoundStep::Ask(first)),
        Some(OwnStep::Helper) => return Some(RoundStep::Help(first)),
        Some(OwnStep::Guard) => return Some(RoundStep::Guard(first)),
        Some(OwnStep::Server) | None => {}
    }
    let alike = own_step(first);
    let count = rest.iter().take_while(|call| own_step(call) == alike).count();
    let (key, calls) = (Key::of(&(round.0, done)), &rest[..count]);
    Some(if alike.is_some() { RoundStep::Servers { key, calls } } else { RoundStep::Together { key, calls } })
}

/// The outcome of calls of MCP servers. It has more members, for the metrics.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ServerRound {
    pub returned: Vec<ToolReturn>,
}

/// The outcome of a call about helpers. It has more members, with which a later attempt knows of the same helpers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HelpOutcome {
    pub result: Value,
    /// Whether helpers work after it.
    pub working: bool,
}

impl HelpOutcome {
    /// The key of the step with a number that makes the call.
    pub fn key(step: u64, call: &ToolCall) -> Key {
        Key::of(&("helper", (step, &call.name, &call.arguments)))
    }
}

/// The outcome of [`Effect::Stop`](crate::Effect::Stop). It has more members as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopOutcome {
    /// What the agent is told; none if it may stop.
    pub reminder: Option<String>,
}

/// The key of the step that says that calls of MCP servers begin. Calls that can be repeated have none.
pub fn server_intent(key: Key) -> Key {
    Key::of(&("intent", key.0))
}

/// The key of the step after large results of MCP servers, which repeats what is counted.
pub fn server_counts(key: Key) -> Key {
    Key::of(&("counted", key.0))
}

/// A job that a tool call spawns.
#[derive(Debug, Clone, PartialEq)]
pub struct Spawn {
    /// Its agent, or the skill. Empty if the model named none; then no job is spawned, and nothing is recorded.
    pub agent: String,
    pub skill: bool,
    pub input: Value,
    /// True for a call of [`RUN`], which tells of failures as a value.
    runs: bool,
}

/// The result of [`RUN`] for an agent and the output or error of its job. It is part of the platform's tools, and not of the loop.
pub type Ran = fn(&str, Result<Value, String>) -> Value;

/// How a spawned job ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildEnd {
    /// Its output.
    Completed(Value),
    /// Its error.
    Failed(String),
    /// Why there is no such job.
    Refused(String),
}

/// What came of a question to people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionEnd {
    /// The answer, or that there is none, as the tool that asked returns it.
    Ended(Value),
    /// Why it was not asked.
    Refused(String),
}

impl QuestionEnd {
    /// The key of the step with a number that asks. An equal question at a later step is another one.
    pub fn key(step: u64, call: &ToolCall) -> Key {
        Key::of(&("question", (step, &call.name, &call.arguments)))
    }

    /// What the model is told of it.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Ended(result) => Outcome::Value(result),
            Self::Refused(why) => Outcome::error("ToolError", why),
        }
    }
}

impl Spawn {
    /// The job of a call; `skill` says whether the tool is a skill.
    pub fn of(call: &ToolCall, skill: bool) -> Self {
        if skill || call.name != RUN {
            return Self { agent: call.name.clone(), skill, input: call.arguments.clone(), runs: false };
        }
        let agent = call.arguments.get("agent").and_then(Value::as_str).unwrap_or_default();
        let input = call.arguments.get("input").cloned().unwrap_or_else(|| json!({}));
        Self { agent: agent.to_owned(), skill: false, input, runs: true }
    }

    /// Why no job is spawned.
    pub fn refused(&self) -> Option<ChildEnd> {
        self.agent.is_empty().then(|| ChildEnd::Refused("Missing 'agent' parameter".to_owned()))
    }

    /// The key of its step.
    pub fn key(&self) -> Key {
        #[derive(Serialize)]
        struct Asked<'a> {
            agent: &'a str,
            input: &'a Value,
            priority: i64,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            skill: bool,
        }
        Key::of(&("child", Asked { agent: &self.agent, input: &self.input, priority: 0, skill: self.skill }))
    }

    /// What the model is told of its end.
    pub fn outcome(&self, end: ChildEnd, ran: Ran) -> Outcome {
        match end {
            ChildEnd::Completed(output) if self.runs => Outcome::Value(ran(&self.agent, Ok(output))),
            ChildEnd::Failed(error) | ChildEnd::Refused(error) if self.runs => {
                Outcome::Value(ran(&self.agent, Err(error)))
            }
            ChildEnd::Completed(output) => Outcome::Value(output),
            ChildEnd::Failed(error) | ChildEnd::Refused(error) if self.skill => Outcome::error("SkillError", error),
            ChildEnd::Failed(error) => Outcome::error("AgentError", error),
            ChildEnd::Refused(why) => Outcome::error("SpawnError", why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: Value) -> ToolCall {
        ToolCall { id: name.to_owned(), name: name.to_owned(), arguments, opaque: Value::Null }
    }

    #[test]
    fn a_round_is_cut_at_spawned_jobs() {
        let calls: Vec<ToolCall> = ["a", "b", RUN, "agent", "user", "c", "lab.x", "lab.y", "team", "team"]
            .into_iter()
            .map(|name| call(name, json!({})))
            .collect();
        let own = |call: &ToolCall| match call.name.as_str() {
            RUN | "agent" => Some(OwnStep::Job),
            "user" => Some(OwnStep::Answer),
            "team" => Some(OwnStep::Helper),
            "lab.x" | "lab.y" => Some(OwnStep::Server),
            _ => None,
        };
        let round = Key([7; 16]);
        let (mut done, mut cut) = (0, Vec::new());
        while let Some(step) = round_step(round, &calls, done, own) {
            let names: Vec<&str> = match step {
                RoundStep::Together { calls, .. } | RoundStep::Servers { calls, .. } => {
                    calls.iter().map(|call| call.name.as_str()).collect()
                }
                RoundStep::Spawn(call) | RoundStep::Ask(call) | RoundStep::Help(call) | RoundStep::Guard(call) => {
                    vec![&call.name]
                }
            };
            done += names.len();
            cut.push(names.join("+"));
        }
        assert_eq!(cut, ["a+b", RUN, "agent", "user", "c", "lab.x+lab.y", "team", "team"]);
        let key = |done| match round_step(round, &calls, done, own) {
            Some(RoundStep::Together { key, .. }) => key,
            other => panic!("{other:?}"),
        };
        assert_ne!(key(0), key(5));
    }

    #[test]
    fn a_run_tells_of_failures_as_a_value() {
        let ran: Ran = |agent, end| json!([agent, end.ok()]);
        let outcome =
            |name: &str, end: ChildEnd| Spawn::of(&call(name, json!({"agent": "x"})), false).outcome(end, ran);
        assert_eq!(outcome(RUN, ChildEnd::Completed(json!(1))), Outcome::Value(json!(["x", 1])));
        assert_eq!(outcome(RUN, ChildEnd::Failed("no".to_owned())), Outcome::Value(json!(["x", null])));
        assert_eq!(outcome("agent", ChildEnd::Completed(json!(1))), Outcome::Value(json!(1)));
        assert_eq!(outcome("agent", ChildEnd::Refused("no".to_owned())), Outcome::error("SpawnError", "no"));
        let nobody = Spawn::of(&call(RUN, json!({})), false);
        assert_eq!(nobody.refused(), Some(ChildEnd::Refused("Missing 'agent' parameter".to_owned())));
        assert!(Spawn::of(&call("agent", json!({})), false).refused().is_none());
    }

    #[test]
    fn a_skill_is_a_child_with_a_key_and_an_error_of_its_own() {
        let [agent, skill] = [false, true].map(|skill| Spawn::of(&call("words", json!({"text": "a"})), skill));
        assert_ne!(agent.key(), skill.key());
        let failed = skill.outcome(ChildEnd::Failed("no text".to_owned()), |_, _| Value::Null);
        assert_eq!(failed, Outcome::error("SkillError", "no text"));
        assert_eq!(skill.outcome(ChildEnd::Completed(json!(2)), |_, _| Value::Null), Outcome::Value(json!(2)));
    }
}
