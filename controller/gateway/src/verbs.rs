//! What clients of `/mcp` ask for, and the operation that each of it stands for: its row says who may.

use atlas_api::{Agents, Jobs, OperationId, Questions};
use serde_json::Value;

use crate::tools::{self, ToolName};

/// A tool or a method of `/mcp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpVerb {
    /// Its name in the protocol.
    pub name: &'static str,
    /// Whether it is a tool; otherwise it is a method.
    pub is_tool: bool,
    /// The operation that it stands for; none for what is public.
    pub operation: Option<OperationId>,
}

impl McpVerb {
    /// The JSON Schema of the arguments of a tool.
    pub fn input_schema(self) -> Option<Value> {
        let tool = tools::all().iter().find(|tool| self.is_tool && tool.name == self.name)?;
        Some(Value::Object((*tool.input_schema).clone()))
    }
}

/// The tools of `/mcp`, and its methods on what is in a cluster.
pub fn mcp_verbs() -> impl Iterator<Item = McpVerb> {
    let tool = |tool: ToolName| McpVerb { name: tool.as_str(), is_tool: true, operation: tool.operation() };
    let method =
        |method: Method| McpVerb { name: method.as_str(), is_tool: false, operation: Some(method.operation()) };
    ToolName::ALL.into_iter().map(tool).chain(Method::ALL.into_iter().map(method))
}

/// A method on what is in a cluster. Others show what the program knows by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    ListTools,
    Listen,
    ReadResource,
    GetTask,
    UpdateTask,
    CancelTask,
}

impl Method {
    const ALL: [Self; 6] =
        [Self::ListTools, Self::Listen, Self::ReadResource, Self::GetTask, Self::UpdateTask, Self::CancelTask];

    /// The operation that it stands for.
    pub(crate) fn operation(self) -> OperationId {
        match self {
            Self::ListTools | Self::Listen => Agents::ListAgents.id(),
            Self::ReadResource | Self::GetTask => Jobs::GetJob.id(),
            Self::UpdateTask => Questions::AnswerQuestion.id(),
            Self::CancelTask => Jobs::CancelJob.id(),
        }
    }

    /// The name in the protocol.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::ListTools => "tools/list",
            Self::Listen => "subscriptions/listen",
            Self::ReadResource => "resources/read",
            Self::GetTask => "tasks/get",
            Self::UpdateTask => "tasks/update",
            Self::CancelTask => "tasks/cancel",
        }
    }
}
