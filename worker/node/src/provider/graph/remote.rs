//! MCP servers of a graph. A model node that lists `mcp:SERVER` gets three tools: one that searches the tools of the server, one that
//! describes them, and one that calls them.

use std::time::Duration;

use atlas_contract::RequiredServer;
use atlas_env::Clock;
use atlas_mcp::Meta;
use atlas_model::{Tool, ToolCall};
use atlas_turn::{OfferedTool, ToolReturn};
use atlas_types::StepKey;

use crate::journal::{Book, JournalError, hashed};
use crate::provider::llm::model::Listener;
use crate::provider::llm::tools::Sources;
use crate::provider::mcp::Servers;
use crate::provider::platform::ToolSource;
use crate::provider::round::servers::{Planned, Round, ServerRound};

/// Calls of one answer that run at the same time.
const PARALLEL: usize = 4;

/// The servers that nodes can list.
pub(super) struct Remote {
    servers: Servers,
    sources: Sources,
    /// The number of this attempt.
    attempt: u32,
    /// Longest time of one call.
    limit: Duration,
}

impl Remote {
    pub(super) fn new(servers: Servers, required: &[RequiredServer], attempt: u32, limit: Duration) -> Self {
        let mut sources = Sources::new();
        for server in required {
            for meta in Meta::ALL {
                let source = ToolSource::Meta { server: server.name.clone(), meta, tools: server.tools.clone() };
                sources.insert(meta.name(&server.name), source);
            }
        }
        Self { servers, sources, attempt, limit }
    }

    /// Whether there is such a server, and the graph may use it.
    pub(super) fn has(&self, server: &str) -> bool {
        self.servers.has(server) && self.sources.contains_key(&Meta::Search.name(server))
    }

    /// The tools of a server.
    pub(super) fn offered(server: &str) -> impl Iterator<Item = OfferedTool> {
        let tool = |meta: Meta| {
            let name = meta.name(server);
            let tool = Tool { name: name.clone(), description: meta.description(server), input_schema: meta.schema() };
            OfferedTool { name, tool }
        };
        Meta::ALL.map(tool).into_iter()
    }

    /// Whether a call is one of a server.
    pub(super) fn answers(&self, call: &ToolCall) -> bool {
        self.sources.contains_key(&call.name)
    }

    /// Makes calls as one step.
    pub(super) async fn call(
        &self,
        book: &Book,
        key: StepKey,
        calls: &[ToolCall],
        listener: &mut impl Listener,
        clock: &dyn Clock,
    ) -> Result<Vec<ToolReturn>, JournalError> {
        let planned: Vec<Planned<'_>> =
            calls.iter().filter_map(|call| Planned::of(call, &self.sources, &self.servers)).collect();
        let Self { servers, attempt, limit, .. } = self;
        let round = ServerRound { servers, clock, attempt: *attempt, limit: *limit, parallel: PARALLEL };
        let keys = (hashed(&("intent", key.0)), key);
        let mut book = book;
        let (Round { returned, .. }, _) = round.calls(&mut book, keys, &planned, listener).await?;
        Ok(returned)
    }
}
