//! The orchestrator of a name.

use std::sync::Arc;

use atlas_state::State;
use atlas_types::{AgentKind, AgentName, AgentVersion, Namespace};

/// What a name stands for.
#[derive(Debug, Clone)]
pub(super) enum Candidate {
    /// The highest version of an agent of the type `orchestrator`.
    Agent(Arc<AgentVersion>),
}

impl Candidate {
    /// The orchestrator of a name; none if there is none.
    pub(super) fn of(state: &State, namespace: &Namespace, name: &str) -> Option<Self> {
        let agent = state.agent_latest(namespace, &AgentName::new(name).ok()?)?;
        (agent.kind == AgentKind::Orchestrator).then(|| Self::Agent(Arc::clone(agent)))
    }
}
