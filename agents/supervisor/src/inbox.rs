//! Messages between the agents of a tree.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::limits::MESSAGES_MAX;
use crate::tree::{AgentId, Call, Refused, Tree, error, text};

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// Who sent it.
    pub from: String,
    /// What it says.
    pub payload: Payload,
    /// In milliseconds since 1970.
    pub sent_ms: u64,
}

/// The kinds of messages. Models send texts; the others come from the platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// A text.
    Text(String),
    /// A task is done.
    TaskCompleted {
        /// The task.
        task: String,
        /// What came of it.
        summary: String,
    },
    /// The receiver should stop.
    ShutdownRequest {
        /// Why.
        reason: String,
    },
    /// The receiver may stop.
    ShutdownApproved,
}

impl Payload {
    /// The place of a kind in an inbox that is read.
    fn class(&self) -> u8 {
        match self {
            Self::ShutdownRequest { .. } | Self::ShutdownApproved => 0,
            Self::TaskCompleted { .. } => 1,
            Self::Text(_) => 2,
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Text(content) => json!({"type": "text", "content": content}),
            Self::TaskCompleted { task, summary } => {
                json!({"type": "task_completed", "task_id": task, "summary": summary})
            }
            Self::ShutdownRequest { reason } => json!({"type": "shutdown_request", "reason": reason}),
            Self::ShutdownApproved => json!({"type": "shutdown_approved"}),
        }
    }
}

/// Unread messages of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Inbox {
    messages: Vec<Envelope>,
}

impl Inbox {
    fn add(&mut self, envelope: Envelope) -> bool {
        let fits = self.messages.len() < MESSAGES_MAX;
        if fits {
            self.messages.push(envelope);
        }
        fits
    }

    /// All messages, which are gone afterwards: requests to stop, then tasks, then texts, each in the order of their arrival.
    pub(crate) fn read(&mut self) -> Value {
        messages(std::mem::take(&mut self.messages))
    }
}

/// Messages that were read, as the model sees them.
pub fn messages(mut messages: Vec<Envelope>) -> Value {
    messages.sort_by_key(|envelope| envelope.payload.class());
    let shown: Vec<Value> = messages
        .iter()
        .map(|Envelope { from, payload, sent_ms }| {
            let at = i64::try_from(*sent_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
            let at = at.unwrap_or(Timestamp::UNIX_EPOCH).to_string();
            json!({"from": from, "payload": payload.to_json(), "timestamp": at})
        })
        .collect();
    json!({"messages": shown, "count": shown.len()})
}

impl Tree {
    /// Puts a message of the platform into an inbox. False if there is no such agent, or its inbox is full.
    pub fn deliver(&mut self, to: &AgentId, envelope: Envelope) -> bool {
        self.members.get_mut(to).is_some_and(|member| member.inbox.add(envelope))
    }

    pub(crate) fn send(&mut self, call: Call<'_>) -> Result<Value, Refused> {
        let (to, content) = (text(call.arguments, "id")?, text(call.arguments, "message")?);
        let Some(id) = self.teammate(call.caller, to) else {
            return Ok(error(format!(
                "No agent found with id '{to}'. Agent may not exist or may have already completed."
            )));
        };
        let (from, payload) = (call.caller.0.clone(), Payload::Text(content.to_owned()));
        if !self.deliver(&id, Envelope { from, payload, sent_ms: call.now_ms }) {
            return Ok(error(format!("The inbox of '{to}' is full: it has {MESSAGES_MAX} unread messages.")));
        }
        Ok(json!({"status": "ok", "message": format!("Message delivered to agent '{to}'")}))
    }

    /// A helper of the caller, one of its siblings, or `parent`.
    fn teammate(&self, caller: &AgentId, to: &str) -> Option<AgentId> {
        let member = self.members.get(caller)?;
        let siblings = member.parent.as_ref().and_then(|parent| self.members.get(parent));
        let known = member.helpers.iter().chain(siblings.into_iter().flat_map(|parent| &parent.helpers));
        let found = known.into_iter().find(|id| id.0 == to).cloned();
        let is_parent = |parent: &&AgentId| to == "parent" || parent.0 == to;
        found.or_else(|| member.parent.as_ref().filter(is_parent).cloned())
    }
}
