//! What a run asks its driver to do.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::fault::{Fault, RunError};
use crate::LengthRule;

/// The name of a piece of work: it is the same in each execution of the same run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WorkId {
    /// The number of the super-step, from 0.
    pub step: u64,
    pub node: String,
    /// The place of the item, for a branch of a map.
    pub item: Option<usize>,
    /// How often the same question was asked before.
    pub asked: u32,
}

/// A piece of work. Its result is reported as [`Event::Finished`](super::Event::Finished).
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    pub id: WorkId,
    /// The node whose settings apply: that of the id, or the branch of that map.
    pub node: String,
    /// How often the node of the id was visited, from 1.
    pub visit: u64,
    pub task: Task,
}

/// What is to be done. Texts are rendered.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Call a model. The result is its text, or the value of the node's schema.
    Llm { instructions: Option<String>, prompt: String },
    /// Run a script with this state. The result is the object that it prints.
    Script { state: Arc<Map<String, Value>> },
    /// Run an agent. The result is its text, or the value of the node's schema.
    Agent { prompt: String },
    /// Search documents. The result has the members `context` and `sources`.
    Rag { query: String },
    /// Ask a person. The result is a text.
    Ask(Question),
}

/// A question for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub text: String,
    /// The answers to choose from; any other text is an answer as well. None if text is expected.
    pub options: Option<Vec<String>>,
    /// What an empty answer means.
    pub default: Option<String>,
    /// What an answer must satisfy.
    pub rule: Option<LengthRule>,
}

/// What a run asks for, and what it reports.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Run(Box<Work>),
    /// The result of this work is no longer needed.
    Cancel(WorkId),
    /// Something that the log should have.
    Note(Note),
    /// A super-step is over.
    Stepped(StepRecord),
    /// The run is over: its output, or why it failed.
    Ended(Result<String, RunError>),
}

/// Something that a person who follows a run wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A node failed, and the run continues at its fallback.
    FellBack { node: String, item: Option<usize>, fault: Fault },
    /// `_next` of a script's output is not text.
    NextIgnored { node: String },
    /// An answer does not satisfy the rule of its question, which is asked again.
    AskedAgain { node: String },
}

/// A super-step that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRecord {
    /// Its number, from 0.
    pub number: u64,
    /// By node id.
    pub branches: Vec<(String, BranchEnd)>,
    /// What it changed in the state. None if it failed and changed nothing.
    pub changed: Option<Vec<Change>>,
}

impl StepRecord {
    /// The nodes of the next super-step, each once.
    pub fn frontier(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for (_, end) in &self.branches {
            let BranchEnd::To(to) = end else { continue };
            for node in to {
                if !all.contains(&node.as_str()) {
                    all.push(node);
                }
            }
        }
        all
    }
}

/// A value of the state that a super-step wrote, for people who follow the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub key: String,
    /// The new value as JSON. None if it has more than [`Change::BYTES_MAX`] bytes.
    pub value: Option<String>,
}

impl Change {
    pub const BYTES_MAX: usize = 16 << 10;

    pub(super) fn new(key: String, value: Option<&Value>) -> Self {
        let mut text = Bounded(Vec::new());
        // The only error is that of the bound.
        let written = serde_json::to_writer(&mut text, value.unwrap_or(&Value::Null));
        Self { key, value: written.ok().and_then(|()| String::from_utf8(text.0).ok()) }
    }
}

/// Takes so many bytes and no more.
struct Bounded(Vec<u8>);

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > Change::BYTES_MAX {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// How a node of a super-step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchEnd {
    /// It continues with these nodes, as they are written.
    To(Vec<String>),
    /// It was an end node.
    End,
    Failed(Fault),
}
