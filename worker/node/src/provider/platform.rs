//! Calls of the platform's tools by attempts of this worker, and what the names in `requires.skills` are.

use atlas_contract::{RequiredSkill, platform};
use atlas_mcp::Meta;
use atlas_types::{FencingToken, StepKey};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use super::{StartError, stopped, user};
use crate::agent::Agent;
use crate::attempt::{Asker, SlotEvent, ToolCall, Work};
use crate::journal::hashed;
use crate::mailbox::{Answer, Mailbox};
use crate::provider::Shared;

/// Calls tools of the platform for one attempt.
#[derive(Clone)]
pub(super) struct Platform {
    told: mpsc::Sender<SlotEvent>,
    token: FencingToken,
    /// True if there was an attempt before this one.
    again: bool,
}

/// What answers the calls of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToolSource {
    /// The platform.
    Platform,
    /// An agent of that name: a call is a job that the agent's own job spawns.
    Agent,
    /// A deployed skill: a call is a job as well.
    Skill,
    /// People: a call is a question.
    User,
    /// The helpers of the agent, and the messages of its team.
    Helper,
    /// Shared memory or knowledge.
    Library,
    /// The agent itself: a call is a process.
    Own,
    /// A tool of an MCP server.
    Server { server: String, tool: String },
    /// One of the three tools with which a model uses those of an MCP server.
    Meta {
        server: String,
        meta: Meta,
        /// The tools of the server that the agent may call; none for all.
        tools: Option<Vec<String>>,
    },
}

/// What a name in `requires.skills` is.
#[derive(Debug)]
pub(super) struct Found {
    /// The name under which it is called.
    pub(super) name: String,
    pub(super) source: ToolSource,
    pub(super) description: String,
    pub(super) input_schema: Value,
}

/// Why a name in `requires.skills` is nothing that can be called.
#[derive(Debug)]
pub(super) struct Missing {
    pub(super) why: String,
    /// Whether the namespace has any skill.
    pub(super) registry: bool,
}

/// The attempt ended while it waited.
#[derive(Debug)]
pub(super) struct Stopped;

impl Platform {
    pub(super) fn of(work: &Work, shared: &Shared) -> Self {
        let assignment = &work.assignment;
        let again = assignment.attempt > atlas_types::Attempt(1);
        Self { told: shared.told.clone(), token: assignment.token, again }
    }

    /// Calls a tool, and waits for the answer.
    pub(super) async fn ask(&self, tool: &str, arguments: &Value, key: StepKey) -> Result<Answer, Stopped> {
        let (answer, answered) = oneshot::channel();
        let arguments = arguments.to_string().into_bytes().into();
        let call = ToolCall { tool: tool.to_owned(), arguments, key, again: self.again, asker: Asker::Journal(answer) };
        self.told.send(SlotEvent::Tool { token: self.token, call }).await.map_err(|_| Stopped)?;
        answered.await.map_err(|_| Stopped)
    }

    /// Finds what an entry of `requires.skills` names.
    pub(super) async fn find(&self, entry: &str) -> Result<Result<Found, Missing>, Stopped> {
        if let Some(tool) = platform::find(entry) {
            return Ok(Ok(Found {
                name: entry.to_owned(),
                source: ToolSource::Platform,
                description: tool.description.to_owned(),
                input_schema: tool.input_schema(),
            }));
        }
        if let Some(tool) = user::find(entry) {
            return Ok(Ok(Found {
                name: entry.to_owned(),
                source: ToolSource::User,
                description: tool.description.to_owned(),
                input_schema: tool.input_schema(),
            }));
        }
        let answer = self.ask(platform::LOOKUP, &json!({"name": entry}), hashed(&("resolve", entry))).await?;
        Ok(match answer {
            Answer::Completed(found) => found_in(entry, &found),
            Answer::Failed(why) | Answer::Refused(why) => Err(Missing { why, registry: true }),
        })
    }
}

fn found_in(entry: &str, answer: &[u8]) -> Result<Found, Missing> {
    let found: Map<String, Value> = serde_json::from_slice(answer).unwrap_or_default();
    let text = |member: &str| found.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    let source = match found.get("source").and_then(Value::as_str) {
        Some("skill") => ToolSource::Skill,
        Some("agent") => ToolSource::Agent,
        _ => {
            let why = match text("error") {
                why if why.is_empty() => format!("Skill '{}' not found in registry", RequiredSkill::of(entry).name),
                why => why,
            };
            return Err(Missing { why, registry: found.get("registry") != Some(&Value::Bool(false)) });
        }
    };
    let schema = found.get("input_schema").filter(|schema| schema.is_object()).cloned();
    let input_schema = schema.unwrap_or_else(|| json!({"type": "object"}));
    Ok(Found { name: text("name"), source, description: text("description"), input_schema })
}

/// Checks that the skills that a program requires are deployed, before it starts. A skill that is removed later fails the calls.
pub(super) async fn check_skills(work: &Work, shared: &Shared, mailbox: &Mailbox) -> Result<(), StartError> {
    let platform = Platform::of(work, shared);
    for entry in skills(&work.agent) {
        let found = tokio::select! {
            biased;
            found = platform.find(entry) => found.map_err(|Stopped| StartError::Stopped)?,
            () = stopped(mailbox) => return Err(StartError::Stopped),
        };
        let missing = match found {
            Ok(Found { source: ToolSource::Skill, .. }) => continue,
            // Only models get agents as tools.
            Ok(_) => Missing { why: format!("Skill '{entry}' not found in registry"), registry: true },
            Err(missing) => missing,
        };
        return Err(if missing.registry { StartError::Skill(missing.why) } else { StartError::NoSkills });
    }
    Ok(())
}

/// The names of the skills that a contract requires, without tools of the platform.
pub(super) fn skill_names(agent: &Agent) -> Vec<&str> {
    skills(agent).map(|entry| RequiredSkill::of(entry).name).collect()
}

fn skills(agent: &Agent) -> impl Iterator<Item = &str> {
    let entries = agent.contract.requires.skills.iter().map(String::as_str);
    entries.filter(|entry| platform::find(entry).is_none())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(answer: &str, expected: &Expect) {
        let found = match found_in("words@^1.0.0", answer.as_bytes()) {
            Ok(found) => format!("{:?} {} {:?} {}", found.source, found.name, found.description, found.input_schema),
            Err(missing) => format!("{} registry={}", missing.why, missing.registry),
        };
        expected.assert_eq(&found);
    }

    #[test]
    fn answers_about_names() {
        check(
            r#"{"source": "skill", "name": "words", "description": "Counts.", "input_schema": {"type": "object"}}"#,
            &expect![[r#"Skill words "Counts." {"type":"object"}"#]],
        );
        check(
            r#"{"source": "agent", "name": "echo", "input_schema": null}"#,
            &expect![[r#"Agent echo "" {"type":"object"}"#]],
        );
        check(r#"{"error": "none", "registry": false}"#, &expect!["none registry=false"]);
        check("[1]", &expect!["Skill 'words' not found in registry registry=true"]);
    }
}
