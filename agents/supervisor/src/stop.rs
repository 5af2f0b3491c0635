//! The end of an agent whose helpers still work.

use crate::limits::REMINDERS_MAX;
use crate::tree::{AgentId, Tree};

/// Whether an agent may stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// It may.
    Accepted,
    /// It has running helpers: it is told so, and goes on.
    Reminded(String),
}

impl Tree {
    /// Whether helpers of an agent work.
    pub fn has_running_helpers(&self, id: &AgentId) -> bool {
        self.running(id).next().is_some()
    }

    /// Whether an agent ended, or is gone.
    pub fn has_ended(&self, id: &AgentId) -> bool {
        self.members.get(id).is_none_or(|member| member.outcome.is_some())
    }

    fn running<'t>(&'t self, id: &AgentId) -> impl Iterator<Item = &'t AgentId> {
        let helpers = self.members.get(id).into_iter().flat_map(|member| &member.helpers);
        helpers.filter(|helper| self.members.get(helper).is_some_and(|helper| helper.outcome.is_none()))
    }

    /// An agent answered without a call. While helpers of it work it is reminded of them, three times at most; then they are cancelled.
    pub fn stopping(&mut self, id: &AgentId) -> Stop {
        let running: Vec<AgentId> = self.running(id).cloned().collect();
        let Some(member) = self.members.get_mut(id).filter(|_| !running.is_empty()) else { return Stop::Accepted };
        if member.reminders >= REMINDERS_MAX {
            member.helpers.retain(|helper| !running.contains(helper));
            running.iter().for_each(|helper| self.remove(helper));
            return Stop::Accepted;
        }
        member.reminders += 1;
        let names: Vec<&str> = running.iter().map(|helper| helper.0.as_str()).collect();
        let mut text = format!(
            "[SYSTEM REMINDER] You stopped while helpers of yours still work: {}. Collect the result of each with agent__collect, or cancel it \
             with agent__cancel.",
            names.join(", ")
        );
        if let Some(pending) = self.escalations.pending() {
            text.push_str(&format!(" They wait for your replies (agent__reply_escalation): {pending}"));
        }
        Stop::Reminded(text)
    }
}
