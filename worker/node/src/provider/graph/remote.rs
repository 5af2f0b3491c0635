//! MCP servers of a graph. A model node that lists `mcp:SERVER` gets three tools: one that searches the tools of the server, one that
//! describes them, and one that calls them.

use std::time::Duration;

use atlas_contract::RequiredServer;
use atlas_env::Clock;
use atlas_mcp::Meta;
use atlas_model::{Tool, ToolCall};
use atlas_turn::{OfferedTool, ToolReturn};
use atlas_types::{Micros, SecretText, StepKey, StepKind, StepUsage};
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, StreamExt as _};

use super::book::Book;
use crate::journal::{JournalError, Made, hashed};
use crate::provider::llm::tools::Sources;
use crate::provider::llm::tools::remote::{Done, Intent, Planned, Round};
use crate::provider::mcp::Servers;
use crate::provider::platform::ToolSource;
use crate::provider::redacted;
use crate::secrets::Secrets;

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

    /// Makes calls as one step. Before calls that must not be repeated, an intent is recorded: if the worker is lost during them, the next
    /// attempt does not call again.
    pub(super) async fn call(
        &self,
        book: &Book,
        key: StepKey,
        calls: &[ToolCall],
        secrets: &(impl Fn() -> Secrets + Sync),
        clock: &dyn Clock,
    ) -> Result<Vec<ToolReturn>, JournalError> {
        let unreadable = |error| JournalError::Unreadable { step: 0, error };
        let planned: Vec<Planned<'_>> =
            calls.iter().filter_map(|call| Planned::of(call, &self.sources, &self.servers)).collect();
        let repeatable = planned.iter().all(|planned| planned.repeatable);
        let mut begun = self.attempt;
        if !repeatable {
            let intent = Intent { attempt: self.attempt, tools: planned.iter().map(Planned::name).collect() };
            let make = || async {
                let outcome = serde_json::to_vec(&intent).map_err(unreadable)?;
                Ok::<_, JournalError>(Made { outcome, usage: StepUsage::default() })
            };
            let recorded = book.step(StepKind::Intent, hashed(&("intent", key.0)), make).await?;
            begun = serde_json::from_slice::<Intent>(&recorded).map_err(unreadable)?.attempt;
        }
        let make = || async {
            let began = clock.monotonic();
            let mut calls: Vec<BoxFuture<'_, (usize, Done, Duration)>> = Vec::with_capacity(planned.len());
            for (place, planned) in planned.iter().enumerate() {
                let unknown = begun != self.attempt && !planned.repeatable;
                calls.push(planned.timed(place, &self.servers, unknown, self.limit, clock).boxed());
            }
            let ends: Vec<_> = stream::iter(calls).buffered(PARALLEL).collect().await;
            let secrets = secrets();
            let ended = ends.into_iter().map(|(place, Done(outcome, word), duration)| {
                let planned = &planned[place];
                let outcome = redacted(outcome, secrets.redactor());
                (planned.counted(word, duration), ToolReturn { call: planned.call.id.clone(), outcome })
            });
            let (mcp, returned) = ended.unzip();
            let outcome = serde_json::to_vec(&Round { mcp, returned }).map_err(unreadable)?;
            let duration = Micros::from(clock.monotonic().saturating_sub(began));
            Ok::<_, JournalError>(Made { outcome, usage: StepUsage { duration, ..StepUsage::default() } })
        };
        let outcome = book.step(StepKind::Tools, key, make).await?;
        Ok(serde_json::from_slice::<Round>(&outcome).map_err(unreadable)?.returned)
    }

    /// Access tokens that texts do not have hidden yet.
    pub(super) fn unhidden(&self) -> Vec<(String, SecretText)> {
        self.servers.unhidden()
    }
}
