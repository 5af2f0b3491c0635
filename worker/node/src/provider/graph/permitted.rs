//! Permissions of tools in the model nodes of a graph. What people allow for the job counts for all its nodes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use atlas_contract::Contract;
use atlas_model::ToolCall;
use atlas_turn::record::QuestionEnd;
use atlas_turn::{Outcome, Permits, Settings, ToolAction};

use crate::provider::llm::fixed;
use crate::provider::llm::loki_agent::toolbox::Toolbox;

/// The rules, and what people have allowed.
pub(super) struct Permitted {
    rules: Settings,
    permits: Mutex<Permits>,
}

impl Permitted {
    /// The rules of the contract, then the guards of the tools.
    pub(super) fn new(contract: &Contract, toolbox: Option<&Toolbox>) -> Self {
        let mut permissions = fixed::permissions(contract);
        permissions.extend(toolbox.into_iter().flat_map(Toolbox::guards));
        Self { rules: Settings { permissions, ..Settings::default() }, permits: Mutex::default() }
    }

    /// None if the call may be made, the question to people first, or the outcome of a call that is refused.
    pub(super) fn check(&self, call: &ToolCall) -> Result<Option<ToolCall>, Outcome> {
        match self.rules.action(&call.name) {
            ToolAction::Deny => Err(Outcome::error("PermissionError", format!("the agent may not call {}", call.name))),
            ToolAction::Ask if self.permits().must_ask(&self.rules, call) => Ok(Some(Permits::question(call))),
            ToolAction::Ask | ToolAction::Allow => Ok(None),
        }
    }

    /// Takes the answer of people: the outcome of a call that they refuse.
    pub(super) fn answered(&self, call: &ToolCall, end: &QuestionEnd) -> Option<Outcome> {
        let mut permits = self.permits();
        let refused = permits.answered(call, end);
        // A call is made right after its answer; ids of other nodes may be equal.
        permits.end_round();
        refused
    }

    fn permits(&self) -> MutexGuard<'_, Permits> {
        // Every change is complete while the lock is held.
        self.permits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
