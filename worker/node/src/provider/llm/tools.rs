//! The tools of one attempt. The table is part of what the job is fixed to: later attempts do not read it again.
//!
//! A tool comes from a source. Another source is one more variant of [`ToolSource`], with an arm where names are looked up
//! and one where the calls of a round are made.

mod call;

use std::collections::BTreeMap;

use atlas_contract::Contract;
use atlas_model::Tool;
use atlas_turn::Offered;

use super::fault::Fault;
use crate::journal::JournalError;
use crate::provider::platform::{Found, Missing, Platform, Stopped, ToolSource};

/// Most tools of an agent.
const TOOLS_MAX: usize = 128;

/// The sources of all offered tools, by the tools' own names.
pub(super) type Sources = BTreeMap<String, ToolSource>;

/// The table of a new job: the tools in `requires.skills`, in their order. Platform tools that only
/// `requires.platform_tools` asks for are not offered to the model, as in Atlas for Python.
pub(super) async fn resolve(contract: &Contract, platform: &Platform) -> Result<(Vec<Offered>, Sources), Fault> {
    let mut found: Vec<(String, Tool)> = Vec::new();
    let mut sources = Sources::new();
    for entry in &contract.requires.skills {
        if sources.contains_key(entry) {
            continue;
        }
        if sources.len() >= TOOLS_MAX {
            return Err(Fault::Tools(format!("Skill resolution failed: the agent has more than {TOOLS_MAX} tools")));
        }
        let Found { name, source, description, input_schema } = platform
            .find(entry)
            .await
            .map_err(stopped)?
            .map_err(|Missing { why, .. }| Fault::Tools(format!("Skill resolution failed: {why}")))?;
        let description = if description.is_empty() { format!("Tool: {name}") } else { description };
        if sources.insert(name.clone(), source).is_none() {
            found.push((name, Tool { name: String::new(), description, input_schema }));
        }
    }
    let legal = atlas_llm::names::legal(found.iter().map(|(name, _)| name.as_str()));
    let offered =
        found.into_iter().zip(legal).map(|((name, tool), legal)| Offered { name, tool: Tool { name: legal, ..tool } });
    Ok((offered.collect(), sources))
}

/// The attempt has been stopped while it waited.
fn stopped(_: Stopped) -> Fault {
    Fault::Journal(JournalError::Stopped)
}
