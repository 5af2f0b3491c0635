//! The tools of one attempt. The table is part of what the job is fixed to: later attempts do not read it again.
//!
//! A tool comes from a source. Another source is one more variant of [`ToolSource`], with an arm in [`Resolver::find`]
//! and one where the calls of a round are made.

mod call;

use std::collections::BTreeMap;

use atlas_contract::{Contract, platform};
use atlas_model::Tool;
use atlas_turn::Offered;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub(super) use self::call::Platform;
use super::fault::Fault;
use crate::journal::{JournalError, hashed};
use crate::mailbox::Answer;
use crate::provider::user;

/// Most tools of an agent.
const TOOLS_MAX: usize = 128;

/// What answers the calls of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToolSource {
    /// The platform.
    Platform,
    /// An agent of that name: a call is a job that the agent's own job spawns.
    Agent,
    /// People: a call is a question.
    User,
}

/// The sources of all offered tools, by the tools' own names.
pub(super) type Sources = BTreeMap<String, ToolSource>;

/// The table of a new job: the tools in `requires.skills`, in their order. Platform tools that only
/// `requires.platform_tools` asks for are not offered to the model, as in Atlas for Python.
pub(super) async fn resolve(contract: &Contract, platform: &Platform) -> Result<(Vec<Offered>, Sources), Fault> {
    let mut found: Vec<(String, Tool)> = Vec::new();
    let mut sources = Sources::new();
    for name in &contract.requires.skills {
        if sources.contains_key(name) {
            continue;
        }
        if sources.len() >= TOOLS_MAX {
            return Err(Fault::Tools(format!("Skill resolution failed: the agent has more than {TOOLS_MAX} tools")));
        }
        let (source, description, input_schema) = find(name, platform).await?;
        let description = if description.is_empty() { format!("Tool: {name}") } else { description };
        found.push((name.clone(), Tool { name: String::new(), description, input_schema }));
        sources.insert(name.clone(), source);
    }
    let legal = atlas_llm::names::legal(found.iter().map(|(name, _)| name.as_str()));
    let offered =
        found.into_iter().zip(legal).map(|((name, tool), legal)| Offered { name, tool: Tool { name: legal, ..tool } });
    Ok((offered.collect(), sources))
}

async fn find(name: &str, platform: &Platform) -> Result<(ToolSource, String, Value), Fault> {
    if let Some(tool) = platform::find(name) {
        return Ok((ToolSource::Platform, tool.description.to_owned(), tool.input_schema()));
    }
    if let Some(tool) = user::find(name) {
        return Ok((ToolSource::User, tool.description.to_owned(), tool.input_schema()));
    }
    let arguments = json!({"name": name});
    let key = hashed(&("resolve", name));
    let answer = platform.ask("atlas.registry.describe", &arguments, key).await?;
    let unknown = || Fault::Tools(format!("Skill resolution failed: Skill '{name}' not found in registry"));
    let described: Map<String, Value> = match answer {
        Answer::Completed(result) => serde_json::from_slice(&result).map_err(|_| unknown())?,
        Answer::Failed(why) | Answer::Refused(why) => {
            return Err(Fault::Tools(format!("Skill resolution failed: {why}")));
        }
    };
    if described.contains_key("error") {
        return Err(unknown());
    }
    let description = described.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    let schema = described.get("input_schema").filter(|schema| schema.is_object());
    Ok((ToolSource::Agent, description, schema.cloned().unwrap_or_else(|| json!({"type": "object"}))))
}

/// The attempt has been stopped while it waited.
fn stopped() -> Fault {
    Fault::Journal(JournalError::Stopped)
}
