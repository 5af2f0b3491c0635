//! Shared memory and knowledge (compatibility §22, §23): what agents ask of them. The controller keeps both and decides who may do what; a
//! worker calls tools of the platform for it, and none if the contract does not enable them.

mod model;
mod orders;

use atlas_contract::search_text;
use atlas_model::ToolCall;
use atlas_secrets::Redactor;
use atlas_turn::Outcome;
use atlas_types::{FailureKind, JobId, StepKey};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::model::{asked, outcome, refused};
pub(super) use self::model::{listed, offered, system};
use self::orders::Orders;
use super::llm::tools::call::RESULT_BYTES_MAX;
use super::platform::{Platform, Stopped};
use super::{Execution, Shared, elsewhere, stopped};
use crate::attempt::Work;
use crate::journal::hashed;
use crate::mailbox::Answer;
use crate::provider::Control;

/// Most entries of the knowledge that an agent is told at its beginning.
const HITS_MAX: usize = 5;

const READ: &str = "atlas.memory.read";
const APPEND: &str = "atlas.memory.append";
const SEARCH: &str = "atlas.knowledge.search";
const STORE: &str = "atlas.knowledge.store";
const SEARCH_DOCUMENTS: &str = "atlas.documents.search";

/// Whether a tool of the platform is one of memory, knowledge or document bases.
pub(super) fn is_of_library(tool: &str) -> bool {
    ["atlas.memory.", "atlas.knowledge.", "atlas.documents."].iter().any(|beginning| tool.starts_with(beginning))
}

/// The arguments of a call without values of secrets, which others would read. JSON that cannot be read stays as it is.
pub(super) fn without_secrets(arguments: &str, redactor: &Redactor) -> Option<String> {
    if redactor.is_empty() {
        return None;
    }
    let mut arguments: Value = serde_json::from_str(arguments).ok()?;
    redactor.json(&mut arguments);
    Some(arguments.to_string())
}

/// Makes a tool call that a model asked for. What it writes has no values of secrets, which others would read.
pub(super) async fn called(
    platform: &Platform,
    call: &ToolCall,
    key: StepKey,
    redactor: &Redactor,
) -> Result<Outcome, Stopped> {
    let (tool, mut arguments) = asked(call);
    redactor.json(&mut arguments);
    Ok(match platform.ask(tool, &arguments, key).await? {
        Answer::Completed(result) if result.len() > RESULT_BYTES_MAX => {
            let bytes = result.len();
            let text = format!("the result has {bytes} bytes, more than {RESULT_BYTES_MAX}; ask for less");
            Outcome::error("ResultTooLarge", text)
        }
        Answer::Completed(result) => match serde_json::from_slice(&result) {
            Ok(value) => outcome(call, &value),
            Err(error) => Outcome::error("JSONDecodeError", error.to_string()),
        },
        Answer::Failed(why) | Answer::Refused(why) => refused(why),
    })
}

/// Memory and knowledge, as far as the contract enables them, for one attempt.
pub(super) struct Library {
    platform: Platform,
    job: JobId,
    memory: bool,
    knowledge: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum LibraryError {
    /// The text of the controller.
    Refused(String),
    /// The attempt ended while it waited.
    Stopped,
}

impl From<Stopped> for LibraryError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl From<LibraryError> for Execution {
    fn from(error: LibraryError) -> Self {
        match error {
            LibraryError::Refused(why) => Self::failed(FailureKind::Agent, why),
            LibraryError::Stopped => Self::stopped(),
        }
    }
}

/// What an agent is told at its beginning.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    /// The shared memory, if the contract enables it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<String>,
    /// Entries of the knowledge that fit the input, if the contract enables it: `{id, domain, content, tags}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) knowledge: Option<Vec<Value>>,
}

impl Known {
    /// Members of a document, each after a comma.
    pub(super) fn members(&self) -> String {
        let memory = self.memory.as_ref().map(|memory| format!(", \"memory\": {}", json!(memory)));
        let knowledge = self.knowledge.as_ref().map(|found| format!(", \"knowledge\": {}", json!(found)));
        memory.into_iter().chain(knowledge).collect()
    }
}

impl Library {
    pub(super) fn of(work: &Work, shared: &Shared) -> Self {
        let requires = &work.agent.contract.requires;
        let (memory, knowledge) = (requires.memory.is_some(), requires.knowledge.enabled);
        Self { platform: Platform::of(work, shared), job: work.assignment.job, memory, knowledge }
    }

    /// Whether the contract enables one of them.
    pub(super) fn is_enabled(&self) -> bool {
        self.memory || self.knowledge
    }

    /// What an agent with this input is told at its beginning.
    pub(super) async fn known(&self, input: &[u8]) -> Result<Known, LibraryError> {
        let memory = match self.memory {
            true => {
                let read = self.ask(READ, &json!({}), "").await?;
                Some(read.get("text").and_then(Value::as_str).unwrap_or_default().to_owned())
            }
            false => None,
        };
        let knowledge = match self.knowledge {
            true => Some(self.hits(input).await?),
            false => None,
        };
        Ok(Known { memory, knowledge })
    }

    /// The entries that fit an input. One without any text asks for nothing.
    async fn hits(&self, input: &[u8]) -> Result<Vec<Value>, LibraryError> {
        let input: Map<String, Value> = serde_json::from_slice(input).unwrap_or_default();
        let query = search_text(&input);
        if query.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.ask(SEARCH, &json!({"query": query, "limit": HITS_MAX}), "").await?;
        Ok(model::hits(&found).into_iter().take(HITS_MAX).collect())
    }

    /// The same for an agent with a process, within the time of its attempt. The error is the end of the attempt.
    pub(super) async fn begin(&self, work: &Work, control: &Control<'_>) -> Result<Known, Execution> {
        if !self.is_enabled() {
            return Ok(Known::default());
        }
        let limit = work.assignment.execution_timeout;
        let known = tokio::select! {
            biased;
            () = stopped(control.mailbox) => return Err(Execution::stopped()),
            () = control.env.clock.sleep(limit.as_duration()) => return Err(Execution::timed_out(limit)),
            known = self.known(&work.input) => known,
        };
        known.map_err(Execution::from)
    }

    /// Takes the instructions out of an output and carries them out. A refusal fails the job.
    pub(super) async fn settle(&self, execution: Execution, work: &Work, control: &Control<'_>) -> Execution {
        let (output, metadata, usable) = match execution {
            Execution::Output { output, metadata, usable } => (output, metadata, usable),
            failed @ Execution::Failed { .. } => return failed,
        };
        if !Orders::may_be_in(output.get()) {
            return Execution::Output { output, metadata, usable };
        }
        let redactor = control.secrets.redactor().clone();
        let bytes = output.get().len();
        let taken = elsewhere(control.env, bytes, move || Orders::take(output, &redactor)).await;
        let Some((output, orders)) = taken else { return Execution::cut_short() };
        let limit = work.assignment.execution_timeout;
        let carried_out = tokio::select! {
            biased;
            () = stopped(control.mailbox) => return Execution::stopped(),
            () = control.env.clock.sleep(limit.as_duration()) => return Execution::timed_out(limit),
            carried_out = self.carry_out(orders) => carried_out,
        };
        match carried_out {
            Ok(()) => Execution::Output { output, metadata, usable },
            Err(error) => Execution::from(error).also_measured(metadata).usable_if(usable),
        }
    }

    async fn carry_out(&self, orders: Orders) -> Result<(), LibraryError> {
        let Orders { appended, stored } = orders;
        if let Some(text) = appended.filter(|_| self.memory) {
            self.ask(APPEND, &json!({ "text": text }), "output").await?;
        }
        if !self.knowledge {
            return Ok(());
        }
        for (place, entry) in stored.map_err(LibraryError::Refused)?.iter().enumerate() {
            self.ask(STORE, entry, &format!("output {place}")).await?;
        }
        Ok(())
    }

    /// Calls a tool. Of equal calls of a job with the same place, the controller carries out one, also those of other attempts.
    async fn ask(&self, tool: &str, arguments: &Value, place: &str) -> Result<Value, LibraryError> {
        let key = hashed(&("library", self.job.to_string(), tool, arguments, place));
        match self.platform.ask(tool, arguments, key).await? {
            Answer::Completed(result) => Ok(serde_json::from_slice(&result).unwrap_or_default()),
            Answer::Failed(why) | Answer::Refused(why) => Err(LibraryError::Refused(why)),
        }
    }
}
