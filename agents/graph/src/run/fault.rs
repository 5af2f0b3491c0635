//! Why a node or a run fails.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// A template refers to something that does not exist.
    Template,
    /// The model was not reached, or its loop of tools did not end.
    Llm,
    /// The answer has not the form of the node's schema.
    Extraction,
    ScriptNotFound,
    ScriptExtension,
    /// The script could not be started.
    ScriptStart,
    ScriptTimeout,
    ScriptExit,
    /// The script printed nothing.
    ScriptEmpty,
    /// The script printed too much.
    ScriptOutput,
    ScriptJson,
    /// The script printed JSON that is no object.
    ScriptObject,
    Agent,
    AgentTimeout,
    AgentDepth,
    Rag,
    /// A question was not answered.
    Approval,
    Input,
    InputValidation,
    /// There was no answer within the time limit of the question.
    NoAnswer,
    /// `over` is not a list.
    MapOver,
    MapBranchType,
    /// A branch of a map wrote no result.
    MapMissingKey,
    NoNext,
    UnknownNode,
    EmptyFrontier,
    VisitCap,
    SeveralEnds,
    WriteConflict,
    Reducer,
    Aborted,
    TimedOut,
}

/// Why a node fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    pub kind: FaultKind,
    pub text: String,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunError {
    pub kind: FaultKind,
    pub graph: String,
    /// The failed nodes of the super-step, by id; none if the run failed between nodes.
    pub nodes: Vec<(String, Fault)>,
    /// What happened, if no node failed.
    pub text: String,
}

impl FaultKind {
    /// The name of the kind.
    pub fn code(self) -> &'static str {
        match self {
            Self::Template => "template",
            Self::Llm => "llm",
            Self::Extraction => "extraction",
            Self::ScriptNotFound => "script-not-found",
            Self::ScriptExtension => "script-extension",
            Self::ScriptStart => "script-start",
            Self::ScriptTimeout => "script-timeout",
            Self::ScriptExit => "script-exit",
            Self::ScriptEmpty => "script-empty",
            Self::ScriptOutput => "script-output",
            Self::ScriptJson => "script-json",
            Self::ScriptObject => "script-object",
            Self::Agent => "agent",
            Self::AgentTimeout => "agent-timeout",
            Self::AgentDepth => "agent-depth",
            Self::Rag => "rag",
            Self::Approval => "approval",
            Self::Input => "input",
            Self::InputValidation => "input-validation",
            Self::NoAnswer => "no-answer",
            Self::MapOver => "map-over",
            Self::MapBranchType => "map-branch-type",
            Self::MapMissingKey => "map-missing-key",
            Self::NoNext => "no-next",
            Self::UnknownNode => "unknown-node",
            Self::EmptyFrontier => "empty-frontier",
            Self::VisitCap => "visit-cap",
            Self::SeveralEnds => "several-ends",
            Self::WriteConflict => "write-conflict",
            Self::Reducer => "reducer",
            Self::Aborted => "aborted",
            Self::TimedOut => "timed-out",
        }
    }
}

impl Fault {
    pub fn new(kind: FaultKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "graph \"{}\"", self.graph)?;
        for (node, fault) in &self.nodes {
            write!(f, ": at node \"{node}\": {}", fault.text)?;
        }
        if self.text.is_empty() { Ok(()) } else { write!(f, ": {}", self.text) }
    }
}

impl std::error::Error for RunError {}
