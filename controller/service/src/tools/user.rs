//! `user__ask`, `user__confirm`, `user__input` and `user__checkbox`: an agent asks people.

use std::sync::Arc;

use atlas_api::catalogue::UNATTENDED;
use atlas_records::ruled;
use atlas_registry::KnownContract;
use atlas_types::{Ask, AskKind, AskQuestion, Job, Micros, QuestionRule, StepKey, ToolRequest};
use serde_json::{Value, json};

use super::{Call, NoResult};
use crate::{Error, Service};

/// What these tools' names start with.
const PREFIX: &str = "user__";

/// Whether a tool asks people.
pub(super) fn is_one(tool: &str) -> bool {
    tool.starts_with(PREFIX) || tool == ToolRequest::QUESTION
}

/// How long a question of a spawned job is open, if its contract does not say.
const CHILD_TIMEOUT: Micros = Micros::from_secs(300);

/// Told to a model whose question was not answered in time.
const FALLBACK: &str = "use your own judgment and go on";

impl Service {
    /// Asks, and waits for the answer. The attempt that asks may park meanwhile; the next one finds the question again.
    pub(super) async fn tool_user(
        &self,
        call: &Call<'_>,
        job: &Job,
        key: StepKey,
        contract: &KnownContract,
    ) -> Result<Value, NoResult> {
        let ask = Arc::new(read_ask(call, job, contract).map_err(NoResult::Refused)?);
        // What came of a step in doubt is known to people only, so no rule answers for them.
        let needs_people =
            call.tool == ToolRequest::QUESTION && call.arguments.get("needs_people") == Some(&Value::Bool(true));
        match &job.questions {
            QuestionRule::Answer(_) if needs_people => {
                let (code, prompt) = (UNATTENDED.code, &ask.prompt);
                Err(NoResult::Refused(format!("{code}: the job's rule for questions cannot answer: {prompt}")))
            }
            QuestionRule::Fail if self.has_supervisor(job).await? => self.ask_and_wait(call, job, key, ask).await,
            QuestionRule::Fail => {
                let (code, prompt) = (UNATTENDED.code, &ask.prompt);
                Err(NoResult::Refused(format!(
                    "{code}: the job asks a question and nobody is there to answer: {prompt}"
                )))
            }
            QuestionRule::Answer(text) => match ruled(&ask, text) {
                Ok(answer) => Ok(told(&ask, &answer)),
                Err(why) => {
                    let code = UNATTENDED.code;
                    Err(NoResult::Refused(format!(
                        "{code}: the answer {text:?} of the job's rule does not fit the question: {why}"
                    )))
                }
            },
            QuestionRule::Wait => self.ask_and_wait(call, job, key, ask).await,
        }
    }

    async fn ask_and_wait(&self, call: &Call<'_>, job: &Job, key: StepKey, ask: Arc<Ask>) -> Result<Value, NoResult> {
        let Some(lease) = &job.lease else { return Err(NoResult::Refused("the lease is outdated".to_owned())) };
        let command =
            AskQuestion { job: job.id, node: lease.node.clone(), token: lease.token, key, ask: Arc::clone(&ask) };
        let id = self.shared.records.ask(&call.caller, command).await?;
        let question = match self.shared.records.question_end(id).await {
            // It is closed with its job, which is being stopped.
            Err(Error::UnknownQuestion) => return Err(NoResult::Refused("the lease is outdated".to_owned())),
            question => question?,
        };
        Ok(match question.answer().map(|answer| serde_json::from_slice::<Value>(answer)) {
            Some(Ok(answer)) => told(&ask, &answer),
            _ => json!({"error": "the question was not answered in time", "fallback": FALLBACK}),
        })
    }
}

/// The result of a tool.
fn told(ask: &Ask, answer: &Value) -> Value {
    match ask.kind {
        AskKind::Choose { many: true, .. } => json!({ "answers": answer }),
        _ => json!({ "answer": answer }),
    }
}

/// The question of a durable program, which says all about it.
fn read_own(call: &Call<'_>) -> Result<Ask, String> {
    let prompt = call.text("prompt");
    if prompt.trim().is_empty() {
        return Err("the question has no prompt".to_owned());
    }
    let chosen = |many: bool| {
        let options = read_options(call)?;
        let other = call.arguments.get("other") == Some(&Value::Bool(true));
        if options.is_empty() && !other {
            return Err("'options' has no option to choose".to_owned());
        }
        Ok(AskKind::Choose { options, many, other })
    };
    let kind = match call.text("kind") {
        "text" => AskKind::Text,
        "confirm" => AskKind::Confirm,
        "choose" => chosen(false)?,
        "checkbox" => chosen(true)?,
        other => return Err(format!("a question is text, confirm, choose or checkbox, not {other:?}")),
    };
    let timeout = call.arguments.get("timeout_us").and_then(Value::as_u64).map(Micros);
    let default = call.arguments.get("default").filter(|default| !default.is_null());
    let default = default.map(|default| Arc::from(default.to_string().into_bytes()));
    Ok(Ask { kind, prompt: prompt.into(), answerers: Vec::new(), timeout, default })
}

fn read_ask(call: &Call<'_>, job: &Job, contract: &KnownContract) -> Result<Ask, String> {
    if call.tool == ToolRequest::QUESTION {
        return read_own(call);
    }
    let prompt = call.text("question");
    if prompt.trim().is_empty() {
        return Err("Missing 'question' parameter".to_owned());
    }
    let kind = match call.tool.strip_prefix(PREFIX) {
        Some("ask" | "select") => AskKind::Choose { options: read_options(call)?, many: false, other: true },
        Some("confirm") => AskKind::Confirm,
        Some("input") => AskKind::Text,
        Some("checkbox") => {
            let options = read_options(call)?;
            if options.is_empty() {
                return Err("'options' has no option to choose".to_owned());
            }
            AskKind::Choose { options, many: true, other: false }
        }
        _ => return Err(format!("Unknown tool: {}", call.tool)),
    };
    let provider = |name: &str| contract.value.pointer(&format!("/provider/{name}"));
    // A graph, and a `config.yaml`, say how long each of their questions is open. Models do not.
    let says = provider("type").is_some_and(|kind| kind == "graph" || kind == "normal");
    let own = call.arguments.get("timeout_seconds").filter(|_| says);
    let timeout = own.or_else(|| provider("question_timeout_seconds")).and_then(Value::as_f64);
    let timeout = timeout.map(|seconds| Micros((seconds * 1e6) as u64));
    let ask = Ask {
        kind,
        prompt: prompt.into(),
        answerers: Vec::new(),
        timeout: timeout.or((job.depth() > 0).then_some(CHILD_TIMEOUT)),
        default: None,
    };
    Ok(ask)
}

/// A list, or the text of one. What is no text in it is left out.
fn read_options(call: &Call<'_>) -> Result<Vec<Arc<str>>, String> {
    let wrong = || "'options' must be a list of strings".to_owned();
    let parsed: Value = match call.arguments.get("options") {
        Some(Value::String(text)) => serde_json::from_str(text).map_err(|_| wrong())?,
        Some(options) => options.clone(),
        None => return Err("Missing 'options' parameter".to_owned()),
    };
    let options = parsed.as_array().ok_or_else(wrong)?;
    let mut texts: Vec<Arc<str>> = Vec::with_capacity(options.len());
    for text in options.iter().filter_map(Value::as_str) {
        if !texts.iter().any(|known| **known == *text) {
            texts.push(text.into());
        }
    }
    Ok(texts)
}
