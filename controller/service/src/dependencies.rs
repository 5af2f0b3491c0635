//! Which of the agents that an agent requires are missing (spec §2.3, §24.5).
//!
//! Asked at the door, like everything that needs a contract: what is found travels as the verdict of the submission. Retries do
//! not pass by a door: they are asked when they get a lease, and fail there.

use atlas_contract::requirement::Requirement;
use atlas_state::State;
use atlas_types::{AgentName, AgentVersion, Namespace, PayloadBody};
use serde_json::Value;

/// One entry of `requires.agents`.
#[derive(Debug)]
pub(crate) struct Dependency {
    /// As the contract has it.
    name: String,
    /// As the contract has it; `*` is any.
    version: String,
}

impl Dependency {
    /// The entries of a normalised contract.
    pub(crate) fn all(contract: &Value) -> Vec<Self> {
        let entries = contract.pointer("/requires/agents").and_then(Value::as_array).into_iter().flatten();
        let text =
            |entry: &Value, member: &str| entry.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
        entries.map(|entry| Self { name: text(entry, "name"), version: text(entry, "version") }).collect()
    }

    /// What is missing if the highest version in service, the one that a call by name gets, is not as required: the name, and
    /// with it the range where only that is wrong.
    fn missing(&self, state: &State, namespace: &Namespace) -> Option<String> {
        let name = AgentName::new(&self.name).ok();
        let Some(found) = name.and_then(|name| state.agent_latest(namespace, &name)) else {
            return Some(self.name.clone());
        };
        // Requirements are checked at registration, so one that cannot be read is of another release.
        let requirement = Requirement::parse(&self.version).unwrap_or(Requirement::Any);
        (!requirement.matches(&found.version)).then(|| format!("{} {requirement}", self.name))
    }
}

/// What is missing, in the order of the contract.
pub(crate) fn missing(dependencies: &[Dependency], state: &State, namespace: &Namespace) -> Vec<String> {
    dependencies.iter().filter_map(|one| one.missing(state, namespace)).collect()
}

/// The error of a job of this agent that begins now, if it lacks others. A contract that is too large for the state is not looked
/// into: it would have to be fetched.
pub fn lacking(state: &State, namespace: &Namespace, agent: &AgentVersion) -> Option<String> {
    let PayloadBody::Inline(contract) = &agent.contract.body else { return None };
    let contract: Value = serde_json::from_slice(contract).ok()?;
    let missing = missing(&Dependency::all(&contract), state, namespace);
    (!missing.is_empty()).then(|| told(&missing))
}

/// The error of a job whose agent lacks others, in the words of the source system.
pub(crate) fn told(missing: &[String]) -> String {
    format!("Missing agent dependencies: {}. Install with: atlas registry pull <name>", missing.join(", "))
}
