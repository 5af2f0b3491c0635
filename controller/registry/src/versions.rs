//! Which version of an agent is meant.

use std::sync::Arc;

use atlas_contract::requirement::Requirement;
use atlas_desk::{Caller, Error};
use atlas_state::State;
use atlas_types::{AgentName, AgentVersion};

/// The highest version of an agent that meets a requirement.
pub fn find_version(
    state: &State,
    caller: &Caller,
    name: &AgentName,
    requirement: Option<&str>,
) -> Result<Option<Arc<AgentVersion>>, Error> {
    let Some(text) = requirement else {
        return Ok(state.agent_latest(&caller.namespace, name).cloned());
    };
    let requirement = Requirement::parse(text).map_err(|error| Error::Malformed(error.to_string()))?;
    let mut versions = state.agent_versions(&caller.namespace, name).rev();
    Ok(versions.find(|agent| !agent.retired && requirement.matches(&agent.version)).cloned())
}

/// Most versions that an error names.
const VERSIONS_TOLD: usize = 5;

/// The error for an agent, or a version of it, that is not there.
pub fn unknown_agent(state: &State, caller: &Caller, name: &str, version: Option<&str>) -> Error {
    let known: Vec<AgentName> = state.agents(&caller.namespace).map(|agent| agent.name.clone()).collect();
    let nearest = atlas_contract::nearest(name, known.iter().map(AgentName::as_str));
    let versions = AgentName::new(name).map(|name| {
        let newest = state.agent_versions(&caller.namespace, &name).rev().take(VERSIONS_TOLD);
        let told = |agent: &Arc<AgentVersion>| {
            let retired = if agent.retired { " (retired)" } else { "" };
            format!("{}{retired}", agent.version)
        };
        newest.map(told).collect()
    });
    Error::UnknownAgent {
        name: name.chars().take(255).collect(),
        version: version.map(|version| version.chars().take(64).collect()),
        versions: versions.unwrap_or_default(),
        suggestion: nearest.and_then(|name| AgentName::new(name).ok()),
    }
}
