//! Continuation: an agent that stops with open items in its todo list is asked to go on (compatibility §32).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::todo::{self, TodoList};

/// What an agent is asked if its settings have no prompt of their own.
const PROMPT: &str = "[SYSTEM REMINDER] Your todo list has open items. Continue with the next one now: call your tools at once, \
    without announcing what you will do. If an item is too broad, split it into small ones first. Check the result of an item before \
    you mark it as done.";

/// When an agent is asked to go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AutoContinue {
    /// Whether the agent has a todo list at all.
    pub enabled: bool,
    /// Most continuations of one prompt.
    pub max: u32,
    /// Whether the instructions explain the tools of the list.
    pub inject: bool,
    /// What the agent is asked. None is a text of ours.
    pub prompt: Option<String>,
}

impl Default for AutoContinue {
    fn default() -> Self {
        Self { enabled: false, max: 10, inject: true, prompt: None }
    }
}

/// The same settings in one place of several, each with its own values or none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AutoContinueLayer {
    #[serde(rename = "auto_continue")]
    pub enabled: Option<bool>,
    #[serde(rename = "max_auto_continues")]
    pub max: Option<u32>,
    #[serde(rename = "inject_todo_instructions")]
    pub inject: Option<bool>,
    #[serde(rename = "continuation_prompt")]
    pub prompt: Option<String>,
}

impl AutoContinue {
    /// The settings of some layers: each value is that of the first layer that has it. For an agent, its own layer is the only one;
    /// otherwise those of the session, the role and the whole program are given in this order.
    pub fn resolve(layers: &[&AutoContinueLayer]) -> Self {
        let standard = Self::default();
        Self {
            enabled: layers.iter().find_map(|layer| layer.enabled).unwrap_or(standard.enabled),
            max: layers.iter().find_map(|layer| layer.max).unwrap_or(standard.max),
            inject: layers.iter().find_map(|layer| layer.inject).unwrap_or(standard.inject),
            prompt: layers.iter().find_map(|layer| layer.prompt.clone()),
        }
    }
}

/// Why a tool of the list was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TodoError {
    #[error("Cannot use todo tools: function calling is disabled.")]
    NoTools,
    #[error("Auto-continue is not enabled. Set 'auto_continue: true' in your config to use todo tools.")]
    Disabled,
}

/// A todo list, and the continuations that it caused.
#[derive(Debug, Clone, PartialEq)]
pub struct Planner {
    settings: AutoContinue,
    /// Whether the agent can call tools.
    tools: bool,
    list: TodoList,
    count: u32,
    /// The answer that caused the last continuation.
    last: Option<String>,
    /// Whether tools were called since then.
    called: bool,
}

/// A message that asks an agent to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation {
    pub message: String,
    /// Its number, from 1.
    pub count: u32,
    pub max: u32,
    /// How many items are open.
    pub open: usize,
}

impl Planner {
    /// A planner with a list, which is that of an earlier prompt or empty.
    pub fn new(settings: AutoContinue, tools: bool, list: TodoList) -> Self {
        Self { settings, tools, list, count: 0, last: None, called: false }
    }

    pub fn list(&self) -> &TodoList {
        &self.list
    }

    /// Continuations of this prompt.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Runs a tool of the list; none if there is no tool of this name.
    pub fn call(&mut self, name: &str, arguments: &Value) -> Option<Result<Value, TodoError>> {
        if !todo::NAMES.contains(&name) {
            return None;
        }
        if !self.tools {
            return Some(Err(TodoError::NoTools));
        }
        if !self.settings.enabled {
            return Some(Err(TodoError::Disabled));
        }
        let answer = self.list.call(name, arguments);
        if name == "todo__clear" {
            self.count = 0;
        }
        answer.map(Ok)
    }

    /// Notes that tools were called.
    pub fn note_calls(&mut self) {
        self.called = true;
    }

    /// Whether an agent that stops now has to go on, if it did not just repeat itself.
    pub fn is_due(&self) -> bool {
        self.tools && self.settings.enabled && self.count < self.settings.max && self.list.open() > 0
    }

    /// Counts a continuation.
    pub fn increment(&mut self) -> u32 {
        self.count = self.count.saturating_add(1);
        self.count
    }

    /// An agent stopped with an answer. Some if it has to go on. None ends the prompt: the next one has all its continuations.
    ///
    /// An agent that gives the same answer again and has called no tools is stuck.
    pub fn stopped(&mut self, answer: &str) -> Option<Continuation> {
        let stuck = !self.called && self.last.as_deref() == Some(answer);
        if !self.is_due() || stuck {
            (self.count, self.last, self.called) = (0, None, false);
            return None;
        }
        (self.last, self.called) = (Some(answer.to_owned()), false);
        let count = self.increment();
        let prompt = self.settings.prompt.as_deref().unwrap_or(PROMPT);
        let message = format!("{prompt}\n\n{}", self.list);
        Some(Continuation { message, count, max: self.settings.max, open: self.list.open() })
    }
}
