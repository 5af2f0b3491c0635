//! The model that a program can call: the worker makes the calls, and the program has neither a key nor a package for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use atlas_env::Env;
use atlas_model::{Answer, Message, NanoDollars, Part, Request, Role, Stop};
use atlas_turn::record::{AnswerOutcome, UnusableAnswer};
use atlas_turn::used;
use atlas_types::StepKey;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::llm::drive::{ESTIMATED, USAGE};
use super::llm::fault::Fault;
use super::llm::fixed::{Fixed, Source};
use super::llm::model::Models;
use super::llm::outage::Limit;
use super::round::caller::{Callable, Caller, Told, pass};
use super::round::model::CallFault;
use crate::attempt::Work;
use crate::journal::{Book, JournalError, Purse};
use crate::provider::{Control, Shared};
use crate::secrets::Secrets;

/// Characters of the name of a model that are repeated.
const MODEL_CHARS_MAX: usize = 200;

/// The most calls of one job at the same time.
pub(super) const PARALLEL_MAX: usize = 64;

/// What a program asks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    // Without messages, it is written as it was before there were any: its hash is the key of a recorded call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    /// Instead of a prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    messages: Vec<Line>,
    system: Option<String>,
    max_tokens: Option<u32>,
    temperature: Option<f64>,
}

/// What somebody said in a conversation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    role: Role,
    content: String,
}

impl Asked {
    pub(super) fn read(asked: Option<&RawValue>) -> Result<Self, String> {
        let text = asked.map_or("null", RawValue::get);
        let asked: Self = serde_json::from_str(text).map_err(|error| format!("the model call: {error}"))?;
        match (&asked.prompt, asked.messages.last()) {
            (Some(_), None) | (None, Some(Line { role: Role::User, .. })) => Ok(asked),
            (None, Some(_)) => Err("the model call: the last message is not one of the role user".to_owned()),
            _ => Err("the model call: it has either a prompt or messages".to_owned()),
        }
    }

    fn messages(&self) -> Vec<Message> {
        let said = |line: &Line| Message { role: line.role, parts: vec![Part::Text { text: line.content.clone() }] };
        match &self.prompt {
            Some(prompt) => vec![Message::user(prompt.clone())],
            None => self.messages.iter().map(said).collect(),
        }
    }
}

/// The model that a job's program can call, or why there is none.
pub(super) fn offered(work: &Work, shared: &Shared) -> Result<String, String> {
    if !work.agent.contract.calls_models() {
        return Err("the contract states no model; add the block \"model\" to agent.yaml".to_owned());
    }
    let fixed = Fixed::of(&work.agent, &work.assignment.attachments, shared);
    fixed.map(|fixed| fixed.settings.model).map_err(|fault| fault.to_string())
}

/// What the job is fixed to, ready to be called.
pub(super) struct ProgramModel {
    callable: Callable,
    purse: Purse,
    secrets: Mutex<Secrets>,
    /// Whether tokens of a call are an estimate.
    estimated: AtomicBool,
    outage_limit: Limit,
}

impl ProgramModel {
    pub(super) async fn open(
        mut fixed: Fixed,
        (work, shared): (&Work, &Shared),
        (purse, outage_limit): (Purse, Limit),
        control: &mut Control<'_>,
    ) -> Result<Self, Fault> {
        // The budget is that of the job, also where the record is of the job that it forks.
        fixed.settings.limits.budget = work.assignment.budget_nanodollars.map(NanoDollars);
        let models = Models::open(&fixed.source, &fixed.settings.model, work, control, shared)?;
        let mut lines = models.left_out.clone();
        if fixed.source == Source::Mock {
            lines.push("the answers come from mock.yaml, because no model is configured".to_owned());
        }
        for text in lines {
            pass(control, Told::Log { level: "warning", text }).await;
        }
        let secrets = Mutex::new(control.secrets.clone());
        Ok(Self { callable: (fixed, models), purse, secrets, estimated: AtomicBool::new(false), outage_limit })
    }

    /// What the program is told of a call's answer, once it is recorded.
    pub(super) async fn call(
        &self,
        book: &Book,
        key: StepKey,
        asked: &Asked,
        (env, job, told): (&Env, &str, &mpsc::UnboundedSender<Told>),
    ) -> Result<Value, Fault> {
        let settings = &self.callable.0.settings;
        let request = Request {
            model: settings.model.clone(),
            system: asked.system.clone().unwrap_or_default(),
            messages: asked.messages().into(),
            max_tokens: asked.max_tokens.or(settings.sampling.max_tokens),
            temperature: asked.temperature.or(settings.sampling.temperature),
            stream: settings.stream,
            ..Request::default()
        };
        let (purse, secrets, outage_limit) = (&self.purse, &self.secrets, self.outage_limit);
        let caller = Caller { env, job, book, purse, secrets, told, outage_limit };
        let recorded = match caller.called(&self.callable, key, request.clone()).await {
            Ok(recorded) => recorded,
            Err(CallFault::Call(error)) => return Err(Fault::Turn(atlas_turn::Failure::Call(error))),
            Err(CallFault::Journal(error)) => return Err(error.into()),
        };
        let answer = answer_of(&recorded)?;
        if used(settings, || request, &answer).estimated {
            self.estimated.store(true, Ordering::Relaxed);
        }
        if answer.stop == Stop::Length {
            // A provider may name itself at any length.
            let model: String = answer.model.chars().take(MODEL_CHARS_MAX).collect();
            let text = format!("the answer of {model} was cut at its limit of tokens");
            // The receiver lives as long as the attempt.
            let _ = told.send(Told::Log { level: "warning", text });
        }
        told_answer(&answer)
    }

    /// What the job's metadata says about the calls.
    pub(super) fn measured(&self) -> Map<String, Value> {
        let mut measured = Map::new();
        let seen = self.callable.1.seen.as_ref().and_then(|seen| seen.value());
        measured.extend(seen.map(|seen| ("_models".to_owned(), seen)));
        if self.estimated.load(Ordering::Relaxed) {
            measured.insert(USAGE.to_owned(), ESTIMATED.into());
        }
        measured
    }
}

/// The recorded answer of a call.
fn answer_of(recorded: &Arc<[u8]>) -> Result<Answer, Fault> {
    if let Ok(unusable) = serde_json::from_slice::<UnusableAnswer>(recorded) {
        return Err(Fault::Turn(atlas_turn::Failure::Call(unusable.failure())));
    }
    match serde_json::from_slice::<AnswerOutcome>(recorded) {
        Ok(recorded) => Ok(recorded.answer),
        Err(error) => Err(Fault::internal(error.to_string())),
    }
}

fn told_answer(answer: &Answer) -> Result<Value, Fault> {
    if answer.stop == Stop::Refused {
        return Err(Fault::Turn(atlas_turn::Failure::refused(answer)));
    }
    let (input, output) = (answer.usage.input, answer.usage.output);
    Ok(json!({"text": answer.text(), "input_tokens": input, "output_tokens": output, "model": answer.model}))
}

/// What the program is told of a recorded answer.
pub(super) fn told_of_record(recorded: &Arc<[u8]>) -> Result<Value, Fault> {
    answer_of(recorded).and_then(|answer| told_answer(&answer))
}

/// Whether a fault ends the job rather than the call.
pub(super) fn ends_job(fault: Fault) -> Result<Fault, JournalError> {
    match fault {
        Fault::Journal(error) => Err(error),
        fault => Ok(fault),
    }
}

/// A fault as a text that begins with its code.
pub(super) fn told_of(fault: &Fault) -> String {
    match fault.code() {
        Some(code) => format!("{code}: {fault}"),
        None => fault.to_string(),
    }
}
