//! Tool calls of one round. Consecutive calls of the platform are one step of the journal; a job that is spawned
//! and a question are steps of their own, so that the job may park.

use std::sync::Arc;

use atlas_contract::platform;
use atlas_model::ToolCall as Asked;
use atlas_secrets::Redactor;
use atlas_turn::record::{ChildEnd as End, OwnStep, RUN, RoundStep, Spawn, round_step};
use atlas_turn::{Key, Outcome, Permits, ToolReturn};
use atlas_types::{StepKey, StepKind};
use futures::future::{BoxFuture, FutureExt as _};
use serde_json::value::RawValue;

use super::super::drive::Driver;
use super::super::fault::Fault;
use super::super::fixed::Fixed;
use super::super::loki_agent::{Launcher, LokiAgent};
use super::super::model::Models;
use super::{Sources, stopped};
use crate::journal::{ChildCall, ChildEnd, hashed};
use crate::mailbox::Answer;
use crate::provider::library;
use crate::provider::mcp::Servers;
use crate::provider::platform::{Platform, ToolSource};
use crate::provider::redacted;
use crate::provider::round::together;

/// Most bytes of a result that is recorded. The model gets fewer.
pub(in crate::provider) const RESULT_BYTES_MAX: usize = 256 << 10;

/// Calls a tool of the platform for the model.
async fn returned(
    (platform, own): (&Platform, Option<(&LokiAgent, &Launcher)>),
    (call, is_library): (&Asked, bool),
    key: StepKey,
    redactor: &Redactor,
) -> Result<ToolReturn, Fault> {
    if let Some((loki, launcher)) = own {
        let outcome = loki.call(call, launcher).await;
        return Ok(ToolReturn { call: call.id.clone(), outcome: redacted(outcome, redactor) });
    }
    if is_library {
        let outcome = library::called(platform, call, key, redactor).await.map_err(stopped)?;
        return Ok(ToolReturn { call: call.id.clone(), outcome: redacted(outcome, redactor) });
    }
    let outcome = match platform.ask(&call.name, &call.arguments, key).await.map_err(stopped)? {
        Answer::Completed(result) if result.len() > RESULT_BYTES_MAX => {
            let bytes = result.len();
            let text = format!("the result has {bytes} bytes, more than {RESULT_BYTES_MAX}; ask for less");
            Outcome::error("ResultTooLarge", text)
        }
        Answer::Completed(result) => match serde_json::from_slice(&result) {
            Ok(value) => Outcome::Value(value),
            Err(error) => Outcome::error("JSONDecodeError", error.to_string()),
        },
        Answer::Failed(why) | Answer::Refused(why) => Outcome::error("ToolError", why),
    };
    Ok(ToolReturn { call: call.id.clone(), outcome: redacted(outcome, redactor) })
}

impl Driver<'_, '_> {
    /// Makes the calls of a round.
    pub(in super::super) async fn tools(
        &mut self,
        key: Key,
        (calls, fixed): (Vec<Asked>, &Fixed),
        (servers, models): (&Servers, Option<&Models>),
        parallel: usize,
    ) -> Result<Vec<ToolReturn>, Fault> {
        let sources = &fixed.tools;
        let mut returned = Vec::with_capacity(calls.len());
        let is_skill = |call: &Asked| sources.get(&call.name) == Some(&ToolSource::Skill);
        let mut permits = std::mem::take(&mut self.permits);
        let own_step = |permits: &Permits, call: &Asked| match sources.get(&call.name) {
            _ if permits.must_ask(&fixed.settings, call) => Some(OwnStep::Guard),
            _ if call.name == RUN => Some(OwnStep::Job),
            Some(ToolSource::Agent | ToolSource::Skill) => Some(OwnStep::Job),
            Some(ToolSource::User) => Some(OwnStep::Answer),
            Some(ToolSource::Helper) => Some(OwnStep::Helper),
            Some(ToolSource::Server { .. } | ToolSource::Meta { .. }) => Some(OwnStep::Server),
            Some(ToolSource::Platform | ToolSource::Library | ToolSource::Own) | None => None,
        };
        while let Some(step) = round_step(key, &calls, returned.len(), |call| own_step(&permits, call)) {
            match step {
                RoundStep::Together { key, calls } => {
                    returned.extend(self.together(StepKey(key.0), (calls, sources), parallel).await?);
                }
                RoundStep::Servers { key, calls } => {
                    returned.extend(self.remote(key, calls, (sources, servers), parallel).await?);
                }
                RoundStep::Spawn(call) => returned.push(self.child(call, is_skill(call)).await?),
                RoundStep::Ask(call) => returned.push(self.question(call).await?),
                RoundStep::Guard(call) => {
                    let end = self.journal.question(&Permits::question(call)).await?;
                    let refused = permits.answered(call, &end);
                    returned.extend(refused.map(|outcome| ToolReturn { call: call.id.clone(), outcome }));
                }
                RoundStep::Help(call) => returned.push(self.help(call, (fixed, models)).await?),
            }
        }
        permits.end_round();
        self.permits = permits;
        Ok(returned)
    }

    /// Calls of the platform, as one step.
    async fn together(
        &mut self,
        key: StepKey,
        (calls, sources): (&[Asked], &Sources),
        parallel: usize,
    ) -> Result<Vec<ToolReturn>, Fault> {
        let number = self.journal.next();
        let (platform, redactor) = (self.platform(), self.control.secrets.redactor());
        let clock = Arc::clone(&self.control.env.clock);
        let (loki, launcher) = (self.loki.as_ref(), self.launcher());
        let make = || async move {
            let mut asked: Vec<BoxFuture<'_, Result<ToolReturn, Fault>>> = Vec::with_capacity(calls.len());
            for (place, call) in calls.iter().enumerate() {
                let source = sources.get(&call.name);
                let own = loki.filter(|_| source == Some(&ToolSource::Own)).map(|loki| (loki, &launcher));
                let call = (call, source == Some(&ToolSource::Library));
                asked.push(returned((&platform, own), call, hashed(&(number, key.0, place)), redactor).boxed());
            }
            together(asked, parallel, &*clock).await
        };
        let outcome = self.journal.step(StepKind::Tools, key, make).await?;
        serde_json::from_slice(&outcome)
            .map_err(|error| Fault::internal(format!("step {number} is not readable: {error}")))
    }

    /// A job that the call spawns: a skill, an agent as a tool, or `atlas.exec.run`.
    async fn child(&mut self, call: &Asked, skill: bool) -> Result<ToolReturn, Fault> {
        let spawn = Spawn::of(call, skill);
        let end = match spawn.refused() {
            Some(end) => end,
            None => {
                let input = RawValue::from_string(spawn.input.to_string());
                let input = input.map_err(|error| Fault::internal(error.to_string()))?;
                let call = ChildCall { agent: spawn.agent.clone(), input, priority: 0, skill };
                match self.journal.child(call).await? {
                    ChildEnd::Completed(output) => {
                        End::Completed(serde_json::from_str(output.get()).unwrap_or_default())
                    }
                    ChildEnd::Failed(error) => End::Failed(error),
                    ChildEnd::Refused(why) => End::Refused(why),
                }
            }
        };
        let outcome = spawn.outcome(end, platform::ran);
        Ok(ToolReturn { call: call.id.clone(), outcome: redacted(outcome, self.control.secrets.redactor()) })
    }

    /// A question to people. An agent with a `config.yaml` says how long one of a helper is open.
    async fn question(&mut self, call: &Asked) -> Result<ToolReturn, Fault> {
        let depth = self.work.assignment.spawn.map_or(0, |rule| rule.depth);
        let timed = self.loki.as_ref().map(|loki| loki.timed(call, depth));
        let outcome = self.journal.question(timed.as_ref().unwrap_or(call)).await?.outcome();
        Ok(ToolReturn { call: call.id.clone(), outcome: redacted(outcome, self.control.secrets.redactor()) })
    }

    /// The caller of the platform's tools.
    pub(in super::super) fn platform(&self) -> Platform {
        Platform::of(self.work, self.shared)
    }
}
