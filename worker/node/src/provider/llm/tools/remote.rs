//! Tool calls to MCP servers. Unless the server's definition says that a call can be repeated, an intent is recorded before it: if the
//! worker is lost then, the next attempt does not call again, and the model reads that the outcome is unknown.

use std::sync::Arc;
use std::time::Duration;

use atlas_env::Clock;
use atlas_mcp::{CallEffects, McpError, McpErrorKind, Meta, Target};
use atlas_model::ToolCall as Asked;
use atlas_turn::record::{server_counts, server_intent};
use atlas_turn::{Key, Outcome, ToolReturn};
use atlas_types::{Micros, StepKey, StepKind, StepUsage, StreamKind};
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, StreamExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::drive::{Driver, StepFault};
use super::super::fault::Fault;
use super::call::RESULT_BYTES_MAX;
use super::{Sources, wanted};
use crate::journal::Made;
use crate::provider::mcp::Servers;
use crate::provider::platform::ToolSource;
use crate::provider::redacted;

/// A recorded round above this is in an artifact, which nobody reads for a metric: its calls are then recorded once more, by themselves.
const COUNTED_BYTES_MAX: usize = 16 << 10;

/// The outcome of an intent.
#[derive(Serialize, Deserialize)]
pub(in crate::provider) struct Intent {
    /// The number of the attempt that makes the calls.
    pub(in crate::provider) attempt: u32,
    pub(in crate::provider) tools: Vec<String>,
}

/// The outcome of a round.
#[derive(Serialize, Deserialize)]
pub(in crate::provider) struct Round {
    pub(in crate::provider) mcp: Vec<Counted>,
    pub(in crate::provider) returned: Vec<ToolReturn>,
}

/// A call for the metrics.
#[derive(Clone, Serialize, Deserialize)]
pub(in crate::provider) struct Counted {
    server: String,
    tool: String,
    /// `ok`, `error`, `unknown`, or the kind of the server's failure.
    outcome: String,
    duration_us: u64,
}

#[derive(Serialize)]
struct Summary<'a> {
    mcp: &'a [Counted],
}

/// A call of a round.
pub(in crate::provider) struct Planned<'a> {
    pub(in crate::provider) call: &'a Asked,
    server: &'a str,
    /// The tool of the server, or the word of a search.
    tool: String,
    meta: Option<(Meta, Option<&'a [String]>)>,
    /// Whether it can be made again.
    pub(in crate::provider) repeatable: bool,
}

/// What came of a call, and the word for it.
pub(in crate::provider) struct Done(pub(in crate::provider) Outcome, pub(in crate::provider) &'static str);

impl Driver<'_, '_> {
    /// Calls of MCP servers, as one step after the intent.
    pub(super) async fn remote(
        &mut self,
        key: Key,
        calls: &[Asked],
        (sources, servers): (&Sources, &Servers),
        parallel: usize,
    ) -> Result<Vec<ToolReturn>, Fault> {
        let planned: Vec<Planned<'_>> = calls.iter().filter_map(|call| Planned::of(call, sources, servers)).collect();
        let attempt = self.work.assignment.attempt.0;
        let repeatable = planned.iter().all(|planned| planned.repeatable);
        let begun = if repeatable { attempt } else { self.intend(server_intent(key), &planned, attempt).await? };
        let number = self.journal.next();
        let control = &mut *self.control;
        let clock = Arc::clone(&control.env.clock);
        let limit = self.work.assignment.execution_timeout.as_duration();
        let planned = &planned;
        let make = || async move {
            let began = clock.monotonic();
            for planned in planned {
                control.say(StreamKind::Progress, "info", planned.said("started")).await;
            }
            let mut running: Vec<BoxFuture<'_, (usize, Done, Duration)>> = Vec::with_capacity(planned.len());
            for (place, planned) in planned.iter().enumerate() {
                let unknown = begun != attempt && !planned.repeatable;
                running.push(planned.timed(place, servers, unknown, limit, &*clock).boxed());
            }
            let mut done: Vec<Option<(Counted, ToolReturn)>> = planned.iter().map(|_| None).collect();
            let mut ends = stream::iter(running).buffer_unordered(parallel.max(1));
            while let Some((place, Done(outcome, word), duration)) = ends.next().await {
                let planned = &planned[place];
                let how = if word == "ok" { "completed" } else { "failed" };
                servers.hide(&mut control.secrets);
                control.say(StreamKind::Progress, "info", planned.said(how)).await;
                let outcome = redacted(outcome, control.secrets.redactor());
                done[place] =
                    Some((planned.counted(word, duration), ToolReturn { call: planned.call.id.clone(), outcome }));
            }
            let (mcp, returned) = done.into_iter().flatten().unzip();
            let outcome = serde_json::to_vec(&Round { mcp, returned }).map_err(StepFault::Internal)?;
            let duration = Micros::from(clock.monotonic().saturating_sub(began));
            Ok::<_, StepFault>(Made { outcome, usage: StepUsage { duration, ..StepUsage::default() } })
        };
        let outcome = match repeatable {
            true => self.journal.step(StepKind::Tools, StepKey(key.0), make).await,
            false => self.journal.step_at_once(StepKind::Tools, StepKey(key.0), make).await,
        };
        let outcome = outcome.map_err(StepFault::into_fault)?;
        let unreadable = |error: serde_json::Error| Fault::internal(format!("step {number} is not readable: {error}"));
        let Round { mcp, returned } = serde_json::from_slice(&outcome).map_err(unreadable)?;
        if outcome.len() > COUNTED_BYTES_MAX {
            self.count(server_counts(key), &mcp).await?;
        }
        Ok(returned)
    }

    /// Records that calls are about to be made. Returns the number of the attempt that began them.
    async fn intend(&mut self, key: Key, planned: &[Planned<'_>], attempt: u32) -> Result<u32, Fault> {
        let number = self.journal.next();
        let tools = planned.iter().map(Planned::name).collect();
        let make = || async move {
            let outcome = serde_json::to_vec(&Intent { attempt, tools }).map_err(StepFault::Internal)?;
            Ok::<_, StepFault>(Made { outcome, usage: StepUsage::default() })
        };
        let outcome = self.journal.step(StepKind::Intent, StepKey(key.0), make).await.map_err(StepFault::into_fault)?;
        let intent: Intent = serde_json::from_slice(&outcome)
            .map_err(|error| Fault::internal(format!("step {number} is not readable: {error}")))?;
        Ok(intent.attempt)
    }

    async fn count(&mut self, key: Key, mcp: &[Counted]) -> Result<(), Fault> {
        let make = || async move {
            let outcome = serde_json::to_vec(&Summary { mcp }).map_err(StepFault::Internal)?;
            Ok::<_, StepFault>(Made { outcome, usage: StepUsage::default() })
        };
        self.journal.step(StepKind::Effect, StepKey(key.0), make).await.map(|_| ()).map_err(StepFault::into_fault)
    }
}

impl<'a> Planned<'a> {
    pub(in crate::provider) fn of(call: &'a Asked, sources: &'a Sources, servers: &Servers) -> Option<Self> {
        let (server, tool, meta) = match sources.get(&call.name)? {
            ToolSource::Server { server, tool } => (server.as_str(), tool.clone(), None),
            ToolSource::Meta { server, meta, tools } => {
                let named = call.arguments["tool"].as_str().filter(|_| *meta == Meta::Invoke);
                (server.as_str(), named.unwrap_or(meta.as_str()).to_owned(), Some((*meta, tools.as_deref())))
            }
            ToolSource::Platform
            | ToolSource::Own
            | ToolSource::Agent
            | ToolSource::Skill
            | ToolSource::User
            | ToolSource::Helper => return None,
        };
        let reads = matches!(meta, Some((Meta::Search | Meta::Describe, _)));
        let known = servers.get(server).ok().and_then(|target| target.spec().effects.get(&tool));
        let repeatable = reads || matches!(known, Some(CallEffects::Pure | CallEffects::Idempotent));
        Some(Self { call, server, tool, meta, repeatable })
    }

    pub(in crate::provider) fn name(&self) -> String {
        format!("{}/{}", self.server, self.tool)
    }

    fn said(&self, what: &str) -> String {
        format!("{}: {what}", self.name())
    }

    pub(in crate::provider) fn counted(&self, outcome: &str, duration: Duration) -> Counted {
        let duration_us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Counted { server: self.server.to_owned(), tool: self.tool.clone(), outcome: outcome.to_owned(), duration_us }
    }

    pub(in crate::provider) async fn timed(
        &self,
        place: usize,
        servers: &Servers,
        unknown: bool,
        limit: Duration,
        clock: &dyn Clock,
    ) -> (usize, Done, Duration) {
        let began = clock.monotonic();
        let done = if unknown { self.unknown() } else { self.done(servers, limit).await };
        (place, done, clock.monotonic().saturating_sub(began))
    }

    /// An earlier attempt was lost during the call.
    fn unknown(&self) -> Done {
        let text = format!(
            "the worker was lost during the call of {}, so its outcome is unknown: it may have had its effect. Find out before you call again.",
            self.name()
        );
        Done(Outcome::error("OutcomeUnknown", text), "unknown")
    }

    async fn done(&self, servers: &Servers, limit: Duration) -> Done {
        let value = match servers.get(self.server) {
            Ok(target) => self.value(servers, target, limit).await,
            Err(error) => Err(error),
        };
        match value {
            Ok(Ok(value)) => {
                let bytes = value.to_string().len();
                if bytes > RESULT_BYTES_MAX {
                    let text = format!("the result has {bytes} bytes, more than {RESULT_BYTES_MAX}; ask for less");
                    return Done(Outcome::error("ResultTooLarge", text), "error");
                }
                Done(Outcome::Value(value), "ok")
            }
            Ok(Err(told)) => Done(Outcome::error("ToolError", told), "error"),
            Err(error) => self.failed(&error),
        }
    }

    fn failed(&self, error: &McpError) -> Done {
        let doubt = matches!(error.kind, McpErrorKind::Timeout | McpErrorKind::Lost) && !self.repeatable;
        let text = match doubt {
            true => format!("{}; the call may have had its effect", error.text),
            false => error.text.clone(),
        };
        let word = if error.kind == McpErrorKind::Refused { "error" } else { error.kind.as_str() };
        Done(Outcome::error("McpError", text), word)
    }

    /// The result, or what the tool says about its failure.
    async fn value(
        &self,
        servers: &Servers,
        target: &Target,
        limit: Duration,
    ) -> Result<Result<Value, String>, McpError> {
        let arguments = &self.call.arguments;
        let Some((meta, allowed)) = self.meta else {
            let called = servers.call(target, &self.tool, atlas_mcp::for_server(object(arguments)), limit).await?;
            return Ok(if called.is_error { Err(called.complaint()) } else { Ok(called.for_model()) });
        };
        let mut tools = servers.admitted(target).await?.tools;
        tools.retain(|tool| wanted(allowed, &tool.name));
        if meta != Meta::Invoke {
            return Ok(meta.answer(self.server, &tools, arguments));
        }
        match Meta::invoked(self.server, &tools, arguments) {
            Ok((tool, arguments)) => {
                let called = servers.call(target, &tool.name, object(&arguments), limit).await?;
                Ok(Ok(called.raw))
            }
            Err(why) => Ok(Err(why)),
        }
    }
}

fn object(arguments: &Value) -> Map<String, Value> {
    arguments.as_object().cloned().unwrap_or_default()
}
