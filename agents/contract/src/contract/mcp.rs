//! `provider` of agents that are a tool of an MCP server, or an agent of another cluster.

use serde_json::{Map, Value};

use super::members::{Conversions, Members};

/// What an mcp agent calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mcp {
    /// The server's object, or `{input.MEMBER}`: the one that the input names.
    pub server: String,
    /// The tool; the input is its arguments.
    pub tool: Option<String>,
    /// The agent of the other cluster; the input is its input.
    pub agent: Option<String>,
}

impl Mcp {
    pub(super) fn read(provider: Members<'_>, conversions: &mut Conversions) -> Self {
        let text = |name| provider.get(name).and_then(Value::as_str).map(str::to_owned);
        let server = provider.text("server", "");
        if server.is_empty() {
            conversions.value("/agent/provider", "mcp provider requires 'server' in contract".to_owned());
        }
        Self { server, tool: text("tool"), agent: text("agent") }
    }

    pub(super) fn members(&self) -> Map<String, Value> {
        let all = [("server", Some(&self.server)), ("tool", self.tool.as_ref()), ("agent", self.agent.as_ref())];
        all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.as_str().into()))).collect()
    }
}
