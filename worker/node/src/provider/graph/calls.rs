//! The tool calls that the model of a node asks for: of people, of MCP servers, of the graph's own tools.

use std::sync::Arc;

use atlas_model::ToolCall;
use atlas_turn::record::QuestionEnd;
use atlas_turn::{Outcome, ToolReturn};
use atlas_types::{Micros, StepKey, StepKind, StepUsage};
use futures::stream::{self, StreamExt as _};
use serde_json::{Value, json};

use super::host::{Surroundings, Told, locked};
use crate::journal::{JournalError, Made, UNATTENDED};
use crate::mailbox::Answer as Called;
use crate::provider::llm::loki_agent::Launcher;
use crate::provider::redacted;
use crate::secrets::Secrets;

/// Tool calls of one answer that run at the same time.
const PARALLEL: usize = 4;

impl Surroundings<'_> {
    /// The outcome of a call that is not made, because a rule or a person does not allow it.
    pub(super) async fn refusal(&self, call: &ToolCall, key: StepKey) -> Option<Outcome> {
        let question = match self.permits.check(call) {
            Ok(question) => question?,
            Err(outcome) => return Some(outcome),
        };
        self.tell(Told::Progress(
            json!({"event": "question_opened", "tool": call.name, "question": question.arguments["question"]}),
        ));
        let end = self.end_of(key, &question.name, &question.arguments).await;
        self.permits.answered(call, &end)
    }

    /// Asks people for the model of a node.
    pub(super) async fn asked(&self, call: &ToolCall, key: StepKey) -> ToolReturn {
        self.tell(Told::Progress(
            json!({"event": "question_opened", "tool": call.name, "question": call.arguments["question"]}),
        ));
        let outcome = self.end_of(key, &call.name, &call.arguments).await.outcome();
        ToolReturn { call: call.id.clone(), outcome: redacted(outcome, self.secrets().redactor()) }
    }

    /// How a question ended.
    async fn end_of(&self, key: StepKey, tool: &str, arguments: &Value) -> QuestionEnd {
        match self.book.question(key, tool, arguments).await {
            Ok(Called::Completed(result)) => QuestionEnd::Ended(serde_json::from_slice(&result).unwrap_or_default()),
            Ok(Called::Failed(why) | Called::Refused(why)) if why.starts_with(UNATTENDED) => {
                self.fail(JournalError::Unattended(why)).await
            }
            Ok(Called::Failed(why) | Called::Refused(why)) => QuestionEnd::Refused(why),
            Err(error) => self.fail(error).await,
        }
    }

    /// The secrets, with all access tokens that servers were given.
    fn secrets_of_servers(&self) -> Secrets {
        for (name, value) in self.remote.unhidden() {
            locked(&self.secrets).hide(&name, value.clone());
            self.tell(Told::Hide { name, value });
        }
        self.secrets()
    }

    /// Calls of MCP servers.
    pub(super) async fn remotely(&self, key: StepKey, calls: &[ToolCall]) -> Result<Vec<ToolReturn>, JournalError> {
        let clock = &*self.shared.env.clock;
        self.remote.call(&self.book, key, calls, &|| self.secrets_of_servers(), clock).await
    }

    /// Calls of the graph's own tools.
    pub(super) async fn locally(
        &self,
        key: StepKey,
        calls: &[ToolCall],
        refused: &[(String, Outcome)],
    ) -> Result<Vec<ToolReturn>, JournalError> {
        let launcher = Launcher { shared: self.shared.clone(), agent: Arc::clone(self.agent) };
        let (env, secrets) = (&self.shared.env, self.secrets());
        let redactor = secrets.redactor();
        let make = || async {
            let began = env.clock.monotonic();
            let call = |call: &ToolCall| {
                let (launcher, call) = (&launcher, call.clone());
                async move {
                    let outcome = match (refused.iter().find(|(id, _)| *id == call.id), &self.toolbox) {
                        (Some((_, outcome)), _) => outcome.clone(),
                        (None, Some(toolbox)) => toolbox.call(&call, launcher).await,
                        (None, None) => Outcome::error("UnknownTool", "the graph has no tools of its own"),
                    };
                    let outcome = redacted(outcome, redactor);
                    ToolReturn { call: call.id, outcome }
                }
            };
            let returned: Vec<ToolReturn> = stream::iter(calls.iter().map(call)).buffered(PARALLEL).collect().await;
            let duration = Micros::from(env.clock.monotonic().saturating_sub(began));
            let outcome = serde_json::to_vec(&returned).map_err(|error| JournalError::Unreadable { step: 0, error })?;
            Ok::<_, JournalError>(Made { outcome, usage: StepUsage { duration, ..StepUsage::default() } })
        };
        let outcome = self.book.step(StepKind::Tools, key, make).await?;
        serde_json::from_slice(&outcome).map_err(|error| JournalError::Unreadable { step: 0, error })
    }
}
