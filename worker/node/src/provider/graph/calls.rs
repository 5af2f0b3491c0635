//! The tool calls that the model of a node asks for: of people, of MCP servers, of the graph's own tools.

use std::sync::Arc;

use atlas_model::ToolCall;
use atlas_turn::record::QuestionEnd;
use atlas_turn::{Outcome, ToolReturn};
use atlas_types::{StepKey, StepKind};
use futures::future::FutureExt as _;
use serde_json::{Value, json};

use super::host::Surroundings;
use crate::journal::{JournalError, UNATTENDED, hashed};
use crate::mailbox::Answer as Called;
use crate::provider::llm::loki_agent::Launcher;
use crate::provider::round::caller::{Followers, Told};
use crate::provider::round::together;
use crate::provider::{library, redacted};

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

    /// Calls of MCP servers.
    pub(super) async fn remotely(&self, key: StepKey, calls: &[ToolCall]) -> Result<Vec<ToolReturn>, JournalError> {
        let mut followers = Followers { told: self.told.clone(), secrets: &self.secrets };
        self.remote.call(&self.book, key, calls, &mut followers, &*self.shared.env.clock).await
    }

    /// Whether a tool is one of the graph's files.
    fn is_own(&self, name: &str) -> bool {
        self.toolbox.as_ref().is_some_and(|own| own.offered().iter().any(|tool| tool.name == name))
    }

    /// Calls of the graph's own tools, and of those for memory, knowledge and document bases.
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
            let call = |(place, call): (usize, &ToolCall)| {
                let (launcher, call) = (&launcher, call.clone());
                async move {
                    let outcome = match (refused.iter().find(|(id, _)| *id == call.id), &self.toolbox) {
                        (Some((_, outcome)), _) => outcome.clone(),
                        (None, Some(toolbox)) if self.is_own(&call.name) => toolbox.call(&call, launcher).await,
                        (None, _) if library::listed(&self.agent.contract.requires, &call.name).is_some() => {
                            let key = hashed(&("library", key.0, place));
                            library::called(&self.platform, &call, key, redactor)
                                .await
                                .map_err(|_| JournalError::Stopped)?
                        }
                        (None, Some(toolbox)) => toolbox.call(&call, launcher).await,
                        (None, None) => Outcome::error("UnknownTool", "the graph has no tools of its own"),
                    };
                    let outcome = redacted(outcome, redactor);
                    Ok::<_, JournalError>(ToolReturn { call: call.id, outcome })
                }
                .boxed()
            };
            together(calls.iter().enumerate().map(call).collect(), PARALLEL, &*env.clock).await
        };
        let outcome = self.book.step(StepKind::Tools, key, make).await?;
        serde_json::from_slice(&outcome).map_err(|error| JournalError::Unreadable { step: 0, error })
    }
}
