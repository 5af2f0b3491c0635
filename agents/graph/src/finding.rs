//! What a validation finds.

use std::collections::BTreeMap;
use std::fmt;

/// A rule of the validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// V1: every target exists.
    Target,
    /// V2: declared edges make no cycle.
    Cycle,
    /// V3: every node is reachable.
    Unreachable,
    /// V4: there is an end node.
    NoEnd,
    /// V5: an end node is reachable.
    EndUnreachable,
    /// V6: script files exist.
    ScriptFile,
    /// V7: agents are installed.
    Agent,
    /// V8: every option has a route.
    OptionRoute,
    /// V9: every route has an option.
    RouteOption,
    /// V10: a rag node lists documents.
    RagDocuments,
    /// V11: the result of a rag node is stored.
    RagUpdates,
    /// V12: tools exist.
    Tool,
    /// V12: MCP servers exist.
    Server,
    /// V12: models exist.
    Model,
    /// V13: `max_concurrency` is at least 1.
    Concurrency,
    /// V14: a map branch has a type that can run as one.
    BranchType,
    /// V15: a map branch has no `next`.
    BranchNext,
    /// V16: a map branch writes only its result.
    BranchUpdates,
    /// V18: human nodes are no targets of a fan-out.
    ParallelHuman,
    /// V19: parallel scripts declare what they write.
    ParallelScript,
    /// V20: parallel nodes write different keys.
    ParallelWrites,
    /// V21: no node reads what a parallel one writes.
    ParallelReads,
    /// A field that the format does not have.
    UnknownField,
    /// A field of the format that has no effect here.
    UnusedField,
    /// A field of the format that cannot be followed here.
    UnsupportedField,
    /// The settings of a search fit together.
    RagSettings,
    /// A node has no `next`.
    MissingNext,
    /// An input node continues with one node.
    InputNext,
    /// `validation` of an input node can be read.
    InputValidation,
    /// A script is a file of the agent's folder.
    ScriptPath,
    /// Text that looks like a placeholder is one.
    Lookalike,
    /// Keys that must exist are written somewhere.
    UnwrittenKey,
    /// Reducers are for keys that are written.
    UnusedReducer,
    /// Parallel paths to a node have the same length.
    UnevenJoin,
    /// `over` of a map is a single placeholder.
    MapOver,
    /// The keys of a map do not hide others.
    MapKeys,
    /// Options differ.
    OptionTwice,
    /// An approval with a time limit says what follows it.
    OnTimeout,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The graph is not run.
    Error,
    Warning,
}

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub check: Check,
    pub level: Level,
    /// None if it concerns the graph.
    pub node: Option<String>,
    /// JSON pointer of the value.
    pub pointer: String,
    /// The line of the value, if it is known.
    pub line: Option<usize>,
    pub message: String,
    /// How to correct it.
    pub suggestion: Option<String>,
}

impl Check {
    /// The name of the rule: a number that the format defines, or a name of our own.
    pub fn code(self) -> &'static str {
        match self {
            Self::Target => "V1",
            Self::Cycle => "V2",
            Self::Unreachable => "V3",
            Self::NoEnd => "V4",
            Self::EndUnreachable => "V5",
            Self::ScriptFile => "V6",
            Self::Agent => "V7",
            Self::OptionRoute => "V8",
            Self::RouteOption => "V9",
            Self::RagDocuments => "V10",
            Self::RagUpdates => "V11",
            Self::Tool => "V12-tool",
            Self::Server => "V12-mcp",
            Self::Model => "V12-model",
            Self::Concurrency => "V13",
            Self::BranchType => "V14",
            Self::BranchNext => "V15",
            Self::BranchUpdates => "V16",
            Self::ParallelHuman => "V18",
            Self::ParallelScript => "V19",
            Self::ParallelWrites => "V20",
            Self::ParallelReads => "V21",
            Self::UnknownField => "unknown-field",
            Self::UnusedField => "unused-field",
            Self::UnsupportedField => "unsupported-field",
            Self::RagSettings => "rag-settings",
            Self::MissingNext => "missing-next",
            Self::InputNext => "input-next",
            Self::InputValidation => "input-validation",
            Self::ScriptPath => "script-path",
            Self::Lookalike => "lookalike",
            Self::UnwrittenKey => "unwritten-key",
            Self::UnusedReducer => "unused-reducer",
            Self::UnevenJoin => "uneven-join",
            Self::MapOver => "map-over",
            Self::MapKeys => "map-keys",
            Self::OptionTwice => "option-twice",
            Self::OnTimeout => "on-timeout",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if let Some(node) = &self.node {
            write!(f, "[{node}] ")?;
        }
        write!(f, "{} ({})", self.message, self.check.code())?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; {suggestion}"),
            None => Ok(()),
        }
    }
}

/// The lines of a document's values by JSON pointer.
pub type Lines = BTreeMap<String, usize>;

/// The line of a value, or of the nearest value around it.
pub(crate) fn line_of(lines: &Lines, pointer: &str) -> Option<usize> {
    let mut pointer = pointer;
    loop {
        if let Some(line) = lines.get(pointer) {
            return Some(*line);
        }
        pointer = &pointer[..pointer.rfind('/')?];
    }
}

/// A pointer to a member of the value at `pointer`.
pub(crate) fn member(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}
