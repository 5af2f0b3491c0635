//! Determines which required agents of an agent are missing.
//!
//! Checked at the door, like everything that needs a contract; the result is part of the submission's verdict. Retries
//! do not pass a door: a leader task checks them by their spec (`requirements.rs` of atlas-duty), and their worker
//! receives the list of missing agents.

use atlas_state::State;
use atlas_types::{AgentVersion, Namespace, PayloadBody, RequiredAgent};
use serde_json::Value;

/// The entries of `requires.agents` of a normalised contract.
pub(crate) fn of(contract: &Value) -> Vec<RequiredAgent> {
    let entries = contract.pointer("/requires/agents").and_then(Value::as_array).into_iter().flatten();
    let text = |entry: &Value, member: &str| entry.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    entries.map(|entry| RequiredAgent { name: text(entry, "name"), version: text(entry, "version") }).collect()
}

/// The error for a job of this agent that starts now, if required agents are missing. A contract that is too large to
/// be inline in the state is not checked, because it would have to be fetched.
pub fn lacking(state: &State, namespace: &Namespace, agent: &AgentVersion) -> Option<String> {
    let PayloadBody::Inline(contract) = &agent.contract.body else { return None };
    let contract: Value = serde_json::from_slice(contract).ok()?;
    let missing = state.missing_agents(namespace, &of(&contract));
    (!missing.is_empty()).then(|| RequiredAgent::told_missing(&missing))
}
