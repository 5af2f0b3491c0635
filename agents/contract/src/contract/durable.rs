//! Which agents can be durable: programs that record their own steps. Agents with a model record theirs anyway.

use atlas_types::AgentKind;

use super::members::{Conversions, Members};
use super::{Contract, ExecMode, ProviderKind};
use crate::warning::Warning;

/// How strictly a durable program has to follow its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Replay {
    /// What the record has and the program did not ask for is a warning in the log of the job.
    #[default]
    Normal,
    /// It fails the job.
    Strict,
}

impl Replay {
    /// The value in contracts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Strict => "strict",
        }
    }

    pub(super) fn read(agent: Members<'_>) -> Self {
        if agent.text("replay", "") == Self::Strict.as_str() { Self::Strict } else { Self::Normal }
    }
}

/// Refuses `durable` for an agent that has no program of its own to make calls, and packages that nothing would install.
pub(super) fn check(contract: &Contract, conversions: &mut Conversions) {
    if contract.durable
        && let Some(why) = obstacle(contract)
    {
        conversions.value("/agent/durable", format!("durable is not possible here: {why}"));
    }
    let has_packages = contract.packages.as_ref().is_some_and(|packages| !packages.is_empty());
    if contract.provider.kind == ProviderKind::Node && has_packages {
        let message = "packages of the provider node are not installed: put them into the agent's folder node_modules, \
                       which is deployed with it";
        conversions.value("/agent/dependencies/packages", message.to_owned());
    }
}

/// Why the agent cannot be durable.
fn obstacle(contract: &Contract) -> Option<&'static str> {
    if contract.kind == AgentKind::Orchestrator {
        return Some("an orchestrator decides on jobs and records nothing");
    }
    match contract.provider.kind {
        ProviderKind::Llm | ProviderKind::Graph | ProviderKind::LokiAgent => {
            Some("agents with a model and graphs always record their steps, without this key")
        }
        ProviderKind::Mcp => Some("a call of an MCP server has no program that could record steps"),
        ProviderKind::Chain => Some("a chain needs no record, because each of its steps is a job"),
        ProviderKind::Exec if contract.provider.mode == Some(ExecMode::Warm) => {
            Some("a program in the mode warm serves many jobs; use the mode per_job")
        }
        ProviderKind::Python | ProviderKind::Node | ProviderKind::Exec => {
            let is_contained = contract.permissions.isolation == "container";
            is_contained.then_some("a program in a container cannot make calls; use isolation: process")
        }
    }
}

/// Warnings for keys without `durable`, where they do nothing.
pub(super) fn without_effect(contract: &Contract) -> Vec<Warning> {
    let is_idle = contract.replay != Replay::Normal && !contract.durable;
    // A program without a host has no other way to ask.
    let searches = !contract.requires.documents.is_empty();
    let cannot_ask = searches && contract.provider.kind == ProviderKind::Exec && !contract.durable;
    let idle = [(is_idle, "/agent/replay"), (cannot_ask, "/agent/requires/documents")];
    let warning = |at: &str| Warning::new(at, "has no effect").with_hint("it counts with durable: true");
    idle.into_iter().filter(|(is_idle, _)| *is_idle).map(|(_, at)| warning(at)).collect()
}
