//! The tree of an agent and its helpers, and the dispatch of tools.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::escalation::Escalations;
use crate::helpers::Summary;
use crate::inbox::Inbox;
use crate::settings::{Agents, Settings};
use crate::tasks::TaskQueue;
use crate::user::Question;

/// The id of an agent in a tree: `agent_NAME_1a2b3c4d`, or the name of the first one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentId(pub String);

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A tool call.
#[derive(Debug, Clone, Copy)]
pub struct Call<'c> {
    /// Who calls.
    pub caller: &'c AgentId,
    /// The name of the tool.
    pub name: &'c str,
    /// Its arguments.
    pub arguments: &'c Value,
    /// In milliseconds since 1970.
    pub now_ms: u64,
}

/// What a call leads to.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The result.
    Now(Value),
    /// Nothing yet: ask again with [`Tree::resume`] when something changed.
    Wait(WaitCause),
    /// A model has to summarise a text first.
    Summarize(Summary),
    /// A person has to answer first.
    Ask(Question),
}

/// What a call waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitCause {
    /// The end of a helper, or a question.
    Helper(AgentId),
    /// The answer to a question that was passed up.
    Reply(Question),
}

/// What the driver has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Start a helper.
    Spawn {
        /// The id of the helper.
        id: AgentId,
        /// The name of its agent.
        agent: String,
        /// Its input.
        prompt: String,
        /// Its place below the first agent.
        depth: usize,
    },
    /// Cancel a helper.
    Cancel(AgentId),
}

/// How a helper ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HelperOutcome {
    /// With this output.
    Completed(String),
    /// With this error.
    Failed(String),
}

/// One agent of a tree.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) parent: Option<AgentId>,
    pub(crate) depth: usize,
    pub(crate) settings: Settings,
    /// Helpers that are not collected, in the order of their start.
    pub(crate) helpers: Vec<AgentId>,
    pub(crate) tasks: TaskQueue,
    pub(crate) inbox: Inbox,
    /// None while it works.
    pub(crate) outcome: Option<HelperOutcome>,
    pub(crate) reminders: u32,
}

/// Why a tool cannot answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refused(pub(crate) String);

pub(crate) fn refused<T>(text: impl Into<String>) -> Result<T, Refused> {
    Err(Refused(text.into()))
}

/// An agent with its helpers.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    seed: u64,
    /// Ids made so far.
    made: u64,
    pub(crate) root: AgentId,
    pub(crate) members: BTreeMap<AgentId, Member>,
    pub(crate) escalations: Escalations,
    pub(crate) effects: Vec<Effect>,
}

impl Tree {
    /// A tree of one agent. Trees with different seeds have different ids.
    pub fn new(seed: u64, name: &str, settings: Settings) -> Self {
        Self::below(seed, name, 0, settings)
    }

    /// A tree of one agent that is itself a helper, at this depth.
    pub fn below(seed: u64, name: &str, depth: usize, settings: Settings) -> Self {
        let root = AgentId(name.to_owned());
        let first = Member::new(name.to_owned(), None, depth, settings);
        let members = BTreeMap::from([(root.clone(), first)]);
        Self { seed, made: 0, root, members, escalations: Escalations::default(), effects: Vec::new() }
    }

    /// The agent that a person started.
    pub fn root(&self) -> &AgentId {
        &self.root
    }

    /// What has to be done since the last call, in order.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Runs a tool. None if the tool is not of this crate.
    pub fn call(&mut self, call: Call<'_>, agents: &dyn Agents) -> Option<Answer> {
        let (family, action) = call.name.split_once("__")?;
        self.escalations.expire(call.now_ms);
        let answer = match family {
            "agent" => self.supervise(call, action, agents),
            "user" => self.user(call, action),
            _ => return None,
        };
        let what = if family == "user" { "User interaction" } else { "Supervisor tool" };
        Some(
            answer.unwrap_or_else(|Refused(why)| {
                Answer::Now(json!({"tool_call_error": format!("{what} failed: {why}")}))
            }),
        )
    }

    fn supervise(&mut self, call: Call<'_>, action: &str, agents: &dyn Agents) -> Result<Answer, Refused> {
        let member = self.member(call.caller)?;
        if !member.settings.spawns && !["send_message", "check_inbox"].contains(&action) {
            return refused("this agent may not start helpers");
        }
        match action {
            "spawn" => self.spawn(call, agents).map(Answer::Now),
            "check" => self.check(call, agents),
            "collect" => self.collect(call.caller, text(call.arguments, "id")?, agents),
            "list" => Ok(Answer::Now(self.list(call.caller)?)),
            "cancel" => self.cancel(call, agents).map(Answer::Now),
            "send_message" => self.send(call).map(Answer::Now),
            "check_inbox" => Ok(Answer::Now(self.member_mut(call.caller)?.inbox.read())),
            "reply_escalation" => self.reply(call.arguments).map(Answer::Now),
            "task_create" => self.task_create(call, agents).map(Answer::Now),
            "task_list" => Ok(Answer::Now(self.member(call.caller)?.tasks.shown())),
            "task_complete" => self.task_complete(call, agents).map(Answer::Now),
            "task_fail" => self.task_fail(call).map(Answer::Now),
            _ => refused(format!("there is no tool \"{}\"", call.name)),
        }
    }

    /// Asks again for the answer to a call that waits.
    pub fn resume(&mut self, caller: &AgentId, waiting: WaitCause, now_ms: u64, agents: &dyn Agents) -> Answer {
        match waiting {
            WaitCause::Reply(question) => self.escalations.resume(question, now_ms),
            WaitCause::Helper(id) => self.collect(caller, &id.0, agents).unwrap_or_else(|Refused(why)| {
                Answer::Now(json!({"tool_call_error": format!("Supervisor tool failed: {why}")}))
            }),
        }
    }

    /// A helper ended. One that is unknown was cancelled before.
    pub fn finished(&mut self, id: &AgentId, outcome: HelperOutcome) {
        if let Some(member) = self.members.get_mut(id).filter(|member| member.outcome.is_none()) {
            member.outcome = Some(outcome);
            let helpers = std::mem::take(&mut member.helpers);
            helpers.iter().for_each(|helper| self.remove(helper));
            self.escalations.forget(id);
        }
    }

    /// Removes an agent with all its helpers, the deepest first. What still works is cancelled.
    pub(crate) fn remove(&mut self, id: &AgentId) {
        let mut order = vec![id.clone()];
        let mut next = 0;
        while let Some(id) = order.get(next) {
            let helpers = self.members.get(id).map(|member| member.helpers.clone()).unwrap_or_default();
            order.extend(helpers);
            next += 1;
        }
        for id in order.into_iter().rev() {
            self.escalations.forget(&id);
            if self.members.remove(&id).is_some_and(|member| member.outcome.is_none()) {
                self.effects.push(Effect::Cancel(id));
            }
        }
    }

    pub(crate) fn member(&self, id: &AgentId) -> Result<&Member, Refused> {
        self.members.get(id).map_or_else(|| refused(format!("there is no agent \"{id}\"")), Ok)
    }

    pub(crate) fn member_mut(&mut self, id: &AgentId) -> Result<&mut Member, Refused> {
        self.members.get_mut(id).map_or_else(|| refused(format!("there is no agent \"{id}\"")), Ok)
    }

    /// The digits in the id of the next helper.
    pub(crate) fn helper_digits(&mut self, agents: &dyn Agents) -> String {
        match agents.digits(self.made + 1) {
            Some(digits) => {
                self.made += 1;
                digits
            }
            None => self.digits(),
        }
    }

    /// Eight hexadecimal digits that no earlier id of this tree has, but for a collision.
    pub(crate) fn digits(&mut self) -> String {
        self.made += 1;
        let mut hasher = Sha256::new();
        hasher.update(self.seed.to_be_bytes());
        hasher.update(self.made.to_be_bytes());
        let hash: [u8; 32] = hasher.finalize().into();
        hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Member {
    pub(crate) fn new(name: String, parent: Option<AgentId>, depth: usize, settings: Settings) -> Self {
        Self {
            name,
            parent,
            depth,
            settings,
            helpers: Vec::new(),
            tasks: TaskQueue::default(),
            inbox: Inbox::default(),
            outcome: None,
            reminders: 0,
        }
    }
}

/// A text that a tool requires.
pub(crate) fn text<'v>(arguments: &'v Value, name: &str) -> Result<&'v str, Refused> {
    let text = arguments.get(name).and_then(Value::as_str);
    let text = text.map_or_else(|| refused(format!("'{name}' is required")), Ok)?;
    if text.len() > crate::limits::TEXT_BYTES_MAX {
        return refused(format!("'{name}' has {} bytes, more than {}", text.len(), crate::limits::TEXT_BYTES_MAX));
    }
    Ok(text)
}

/// The result of a call that names something unknown or is not possible now.
pub(crate) fn error(message: impl Into<String>) -> Value {
    json!({"status": "error", "message": message.into()})
}
