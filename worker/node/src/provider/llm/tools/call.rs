//! Calls of the tools of one round. Consecutive calls of the platform are one step of the journal; a job that is spawned
//! is a step of its own, so that it may park.

use std::sync::Arc;

use atlas_contract::platform;
use atlas_model::ToolCall as Asked;
use atlas_secrets::Redactor;
use atlas_turn::{Key, Outcome, Returned};
use atlas_types::{FencingToken, Micros, StepKey, StepKind, StepUsage};
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::super::drive::{Driver, StepFault};
use super::super::fault::Fault;
use super::{Sources, ToolSource, stopped};
use crate::journal::{ChildCall, ChildEnd, Made, hashed};
use crate::mailbox::Answer;
use crate::provider::mcp::Servers;
use crate::pump::Asker;
use crate::slot::{SlotEvent, ToolCall};

/// Most bytes of a result that is recorded. The model gets fewer.
pub(super) const RESULT_BYTES_MAX: usize = 256 << 10;

/// Calls tools of the platform for one attempt.
#[derive(Clone)]
pub(in super::super) struct Platform {
    pub(in super::super) told: mpsc::Sender<SlotEvent>,
    pub(in super::super) token: FencingToken,
    /// True if there was an attempt before this one.
    pub(in super::super) again: bool,
}

impl Platform {
    /// Calls a tool, and waits for the answer.
    pub(super) async fn ask(&self, tool: &str, arguments: &Value, key: StepKey) -> Result<Answer, Fault> {
        let (answer, answered) = oneshot::channel();
        let arguments = arguments.to_string().into_bytes().into();
        let call = ToolCall { tool: tool.to_owned(), arguments, key, again: self.again, asker: Asker::Journal(answer) };
        self.told.send(SlotEvent::Tool { token: self.token, call }).await.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())
    }

    async fn returned(&self, call: &Asked, key: StepKey, redactor: &Redactor) -> Result<Returned, Fault> {
        let answer = self.ask(&call.name, &call.arguments, key).await?;
        let outcome = match answer {
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
        Ok(Returned { call: call.id.clone(), outcome: redacted(outcome, redactor) })
    }
}

/// How a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Platform,
    Child,
    Server,
}

impl Way {
    fn of(call: &Asked, sources: &Sources) -> Self {
        match sources.get(&call.name) {
            Some(ToolSource::Server { .. } | ToolSource::Meta { .. }) => Self::Server,
            Some(ToolSource::Agent) => Self::Child,
            _ if call.name == platform::RUN => Self::Child,
            _ => Self::Platform,
        }
    }
}

impl Driver<'_, '_> {
    /// Makes the calls of a round.
    pub(in super::super) async fn tools(
        &mut self,
        key: Key,
        (calls, sources): (Vec<Asked>, &Sources),
        servers: &Servers,
        parallel: usize,
    ) -> Result<Vec<Returned>, Fault> {
        let mut returned = Vec::with_capacity(calls.len());
        let mut rest = calls.as_slice();
        while let Some(call) = rest.first() {
            let way = Way::of(call, sources);
            if way == Way::Child {
                returned.push(self.child(call).await?);
                rest = &rest[1..];
                continue;
            }
            let count = rest.iter().take_while(|call| Way::of(call, sources) == way).count();
            let (together, others) = rest.split_at(count);
            let key = hashed(&(key.0, returned.len()));
            returned.extend(match way {
                Way::Server => self.remote(key, together, (sources, servers), parallel).await?,
                _ => self.together(key, together, parallel).await?,
            });
            rest = others;
        }
        Ok(returned)
    }

    /// Calls of the platform, as one step.
    async fn together(&mut self, key: StepKey, calls: &[Asked], parallel: usize) -> Result<Vec<Returned>, Fault> {
        let number = self.journal.next();
        let (platform, redactor) = (self.platform(), self.control.secrets.redactor());
        let clock = Arc::clone(&self.control.env.clock);
        let make = || async move {
            let began = clock.monotonic();
            let mut asked: Vec<BoxFuture<'_, Result<Returned, Fault>>> = Vec::with_capacity(calls.len());
            for (place, call) in calls.iter().enumerate() {
                asked.push(platform.returned(call, hashed(&(number, key.0, place)), redactor).boxed());
            }
            let returned: Vec<Returned> =
                stream::iter(asked).buffered(parallel.max(1)).try_collect().await.map_err(StepFault::Tools)?;
            let duration = Micros::from(clock.monotonic().saturating_sub(began));
            let outcome = serde_json::to_vec(&returned).map_err(StepFault::Internal)?;
            Ok::<_, StepFault>(Made { outcome, usage: StepUsage { duration, ..StepUsage::default() } })
        };
        let outcome = self.journal.step(StepKind::Tools, key, make).await.map_err(StepFault::into_fault)?;
        serde_json::from_slice(&outcome)
            .map_err(|error| Fault::internal(format!("step {number} is not readable: {error}")))
    }

    /// A job that the call spawns: an agent as a tool, or `atlas.exec.run`.
    async fn child(&mut self, call: &Asked) -> Result<Returned, Fault> {
        let runs = call.name == platform::RUN;
        let (agent, input) = if runs {
            let agent = call.arguments.get("agent").and_then(Value::as_str).unwrap_or_default();
            (agent, call.arguments.get("input").cloned().unwrap_or_else(|| json!({})))
        } else {
            (call.name.as_str(), call.arguments.clone())
        };
        let answer = if agent.is_empty() {
            Answer::Refused("Missing 'agent' parameter".to_owned())
        } else {
            let input = RawValue::from_string(input.to_string()).map_err(|error| Fault::internal(error.to_string()))?;
            match self.journal.child(ChildCall { agent: agent.to_owned(), input, priority: 0 }).await? {
                ChildEnd::Completed(output) => Answer::Completed(output.get().as_bytes().into()),
                ChildEnd::Failed(error) => Answer::Failed(error),
                ChildEnd::Refused(why) => Answer::Refused(why),
            }
        };
        let outcome = match answer {
            answer if runs => Outcome::Value(platform::ran(agent, ended(answer))),
            Answer::Completed(output) => Outcome::Value(serde_json::from_slice(&output).unwrap_or_default()),
            Answer::Failed(error) => Outcome::error("AgentError", error),
            Answer::Refused(why) => Outcome::error("SpawnError", why),
        };
        Ok(Returned { call: call.id.clone(), outcome: redacted(outcome, self.control.secrets.redactor()) })
    }

    /// The caller of the platform's tools.
    pub(in super::super) fn platform(&self) -> Platform {
        let assignment = &self.work.assignment;
        let again = assignment.attempt > atlas_types::Attempt(1);
        Platform { told: self.shared.told.clone(), token: assignment.token, again }
    }
}

/// The output of a job, or its error.
fn ended(answer: Answer) -> Result<Value, String> {
    match answer {
        Answer::Completed(output) => Ok(serde_json::from_slice(&output).unwrap_or_default()),
        Answer::Failed(error) | Answer::Refused(error) => Err(error),
    }
}

/// An outcome without values of secrets.
pub(super) fn redacted(outcome: Outcome, redactor: &Redactor) -> Outcome {
    match outcome {
        Outcome::Value(mut value) => {
            redactor.json(&mut value);
            Outcome::Value(value)
        }
        Outcome::Error { kind, text } => Outcome::Error { text: redactor.text(&text).into_owned(), kind },
    }
}
