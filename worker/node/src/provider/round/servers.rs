//! Tool calls to MCP servers, as one step. Unless the server's definition says that a call can be repeated, an intent is recorded before it: if the
//! worker is lost then, the next attempt does not call again, and the model reads that the outcome is unknown.

use std::time::Duration;

use atlas_env::Clock;
use atlas_mcp::{CallEffects, McpError, McpErrorKind, Meta, Target};
use atlas_model::ToolCall as Asked;
use atlas_turn::{Outcome, ToolReturn};
use atlas_types::{StepKey, StepKind};
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, StreamExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::made_since;
use crate::journal::{Intent, JournalError, Steps, at_most_once, once};
use crate::provider::llm::model::Listener;
use crate::provider::llm::tools::call::RESULT_BYTES_MAX;
use crate::provider::llm::tools::{Sources, wanted};
use crate::provider::mcp::Servers;
use crate::provider::platform::ToolSource;
use crate::provider::redacted;

/// The recorded outcome of a round.
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

/// A call of a round.
pub(in crate::provider) struct Planned<'a> {
    call: &'a Asked,
    server: &'a str,
    /// The tool of the server, or the word of a search.
    tool: String,
    meta: Option<(Meta, Option<&'a [String]>)>,
    /// Whether it can be made again.
    repeatable: bool,
}

/// What came of a call, and the word for it.
struct Done(Outcome, &'static str);

/// What the rounds of an attempt have in common.
pub(in crate::provider) struct ServerRound<'a> {
    pub(in crate::provider) servers: &'a Servers,
    pub(in crate::provider) clock: &'a dyn Clock,
    /// The number of the attempt.
    pub(in crate::provider) attempt: u32,
    /// Longest time of one call.
    pub(in crate::provider) limit: Duration,
    /// Calls that run at the same time.
    pub(in crate::provider) parallel: usize,
}

impl ServerRound<'_> {
    /// Makes calls, and records their results; or returns the recorded ones, with how many bytes they have there.
    pub(in crate::provider) async fn calls(
        &self,
        journal: &mut impl Steps,
        (intent, step): (StepKey, StepKey),
        planned: &[Planned<'_>],
        listener: &mut impl Listener,
    ) -> Result<(Round, usize), JournalError> {
        let make = |in_doubt: bool| async move {
            let began = self.clock.monotonic();
            let round = self.made(planned, in_doubt, listener).await;
            made_since(began, &round, self.clock)
        };
        let step = (StepKind::Tools, step);
        let outcome = match planned.iter().all(|planned| planned.repeatable) {
            true => once(journal, step, || make(false)).await?,
            false => {
                let tools = planned.iter().map(Planned::name).collect();
                let made = Intent { attempt: self.attempt, tools };
                at_most_once(journal, (intent, &made), step, make).await?
            }
        };
        let round = serde_json::from_slice(&outcome).map_err(|error| journal.unreadable(error))?;
        Ok((round, outcome.len()))
    }

    async fn made(&self, planned: &[Planned<'_>], in_doubt: bool, listener: &mut impl Listener) -> Round {
        for planned in planned {
            listener.hear_of_server(planned.said("started")).await;
        }
        let mut running: Vec<BoxFuture<'_, (usize, Done, Duration)>> = Vec::with_capacity(planned.len());
        for (place, planned) in planned.iter().enumerate() {
            let unknown = in_doubt && !planned.repeatable;
            running.push(planned.timed(place, unknown, self).boxed());
        }
        let mut done: Vec<Option<(Counted, ToolReturn)>> = planned.iter().map(|_| None).collect();
        let mut ends = stream::iter(running).buffer_unordered(self.parallel.max(1));
        while let Some((place, Done(outcome, word), duration)) = ends.next().await {
            let planned = &planned[place];
            for (name, value) in self.servers.unhidden() {
                listener.hide(&name, value);
            }
            let how = if word == "ok" { "completed" } else { "failed" };
            listener.hear_of_server(planned.said(how)).await;
            let outcome = redacted(outcome, listener.secrets().redactor());
            done[place] =
                Some((planned.counted(word, duration), ToolReturn { call: planned.call.id.clone(), outcome }));
        }
        let (mcp, returned) = done.into_iter().flatten().unzip();
        Round { mcp, returned }
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
            | ToolSource::Library
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

    fn name(&self) -> String {
        format!("{}/{}", self.server, self.tool)
    }

    fn said(&self, what: &str) -> String {
        format!("{}: {what}", self.name())
    }

    fn counted(&self, outcome: &str, duration: Duration) -> Counted {
        let duration_us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Counted { server: self.server.to_owned(), tool: self.tool.clone(), outcome: outcome.to_owned(), duration_us }
    }

    async fn timed(&self, place: usize, unknown: bool, round: &ServerRound<'_>) -> (usize, Done, Duration) {
        let began = round.clock.monotonic();
        let done = if unknown { self.unknown() } else { self.done(round.servers, round.limit).await };
        (place, done, round.clock.monotonic().saturating_sub(began))
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
