//! Answers, whole or as events.

use std::collections::BTreeMap;

use atlas_model::{Answer, CallError, CallErrorKind, Request, Stop, Usage};
use serde_json::{Value, json};

use super::encode::{PLACE, THINKING, TOOL_PLAN};
use crate::assembly::Assembly;
use crate::decoder::Machine;
use crate::raw::Raw;
use crate::{Event, failure, json};

/// An answer as it forms.
#[derive(Debug)]
pub(super) struct Reader {
    assembly: Assembly,
    /// The reasoning that takes more text: the tool plan or a block of the content.
    open: Option<&'static str>,
    /// Calls by the provider's numbers.
    calls: BTreeMap<u64, usize>,
    id: Option<String>,
    model: String,
    stop: Option<Stop>,
    usage: Usage,
    raw: Raw,
}

impl Reader {
    /// A reader for the answer to `request`. Answers do not name their model.
    pub(super) fn new(request: &Request) -> Self {
        Self {
            assembly: Assembly::new(request.messages.len()),
            open: None,
            calls: BTreeMap::new(),
            id: None,
            model: request.model.clone(),
            stop: None,
            usage: Usage::default(),
            raw: Raw::default(),
        }
    }

    /// Reads an answer that arrived whole.
    pub(super) fn whole(&mut self, answer: &Value) -> Result<Answer, CallError> {
        let message = answer.get("message").filter(|message| message.is_object());
        let message = message.ok_or_else(|| failure::of_document(answer, "the answer has no message"))?;
        let out = &mut Vec::new();
        self.message(message, out)?;
        for block in json::list(message, "/content") {
            self.block(block, out)?;
        }
        for (number, call) in (0..).zip(json::list(message, "/tool_calls")) {
            self.begin_call(number, call, out)?;
        }
        self.raw.unknown(message, &["role", "content", "tool_plan", "tool_calls"])?;
        self.end_of_message(answer)?;
        self.raw.unknown(answer, &["id", "message", "finish_reason", "usage"])?;
        self.id = json::text(answer, "/id").map(str::to_owned);
        self.finish()
    }

    /// What a message has beside its content.
    fn message(&mut self, message: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        match json::text(message, "/tool_plan") {
            Some(plan) => self.reasoning(TOOL_PLAN, plan, out),
            None => Ok(()),
        }
    }

    /// A block of the content, or the beginning of one.
    fn block(&mut self, block: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        self.close();
        match json::text(block, "/type") {
            Some("text" | "thinking") | None => self.piece(block, out),
            Some(_) => self.raw.push("content", block.clone()),
        }
    }

    /// More of a block.
    fn piece(&mut self, piece: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        if let Some(text) = json::text(piece, "/thinking") {
            self.reasoning(THINKING, text, out)?;
        }
        match json::text(piece, "/text") {
            Some(text) => {
                self.open = None;
                self.assembly.text(text, out)
            }
            None => Ok(()),
        }
    }

    fn reasoning(&mut self, place: &'static str, text: &str, out: &mut Vec<Event>) -> Result<(), CallError> {
        let begins = self.open != Some(place);
        if begins {
            self.close();
        }
        self.assembly.reasoning(text, out)?;
        if begins {
            self.open = Some(place);
            self.assembly.reasoning_opaque(json!({PLACE: place}))?;
        }
        Ok(())
    }

    fn close(&mut self) {
        self.open = None;
        self.assembly.close();
    }

    fn begin_call(&mut self, number: u64, call: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        self.close();
        let id = json::text(call, "/id").unwrap_or_default();
        let name = json::text(call, "/function/name").unwrap_or_default();
        let index = self.assembly.begin_call(id, name, out)?;
        self.calls.insert(number, index);
        self.arguments(number, call, out)
    }

    fn arguments(&mut self, number: u64, call: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        let text = json::text(call, "/function/arguments").unwrap_or_default();
        let index = self.calls.get(&number);
        let index = index.ok_or_else(|| failure::answer(format!("a piece of call {number}, which has not begun")))?;
        self.assembly.name_call(*index, json::text(call, "/function/name").unwrap_or_default(), out)?;
        self.assembly.arguments(*index, text, out)
    }

    /// Why the message ended, and what it used.
    fn end_of_message(&mut self, end: &Value) -> Result<(), CallError> {
        let usage = end.get("usage").unwrap_or(&Value::Null);
        self.usage = read_usage(usage);
        let rest = json::unknown(usage, &["tokens", "cached_tokens"]);
        if !rest.is_empty() {
            self.raw.member("usage", rest.into())?;
        }
        let reason = json::text(end, "/finish_reason").unwrap_or_default();
        let error = json::text(end, "/error").unwrap_or("the provider could not finish the answer");
        self.stop = Some(match reason {
            "COMPLETE" => Stop::End,
            "STOP_SEQUENCE" => Stop::Text,
            "MAX_TOKENS" => Stop::Length,
            "TOOL_CALL" => Stop::Tools,
            "ERROR" => return Err(ended(CallErrorKind::Provider, error)),
            "TIMEOUT" => return Err(ended(CallErrorKind::Timeout, error)),
            other => Stop::Other(other.to_owned()),
        });
        Ok(())
    }

    fn finish(&mut self) -> Result<Answer, CallError> {
        failure::refuse_nothing(
            &self.assembly,
            self.stop.as_ref().is_some_and(|stop| *stop != Stop::Other(String::new())),
        )?;
        let stop = self.stop.take().unwrap_or(Stop::End);
        let stop = if stop == Stop::End && self.assembly.calls() > 0 { Stop::Tools } else { stop };
        Ok(Answer {
            parts: self.assembly.finish()?,
            stop,
            usage: self.usage,
            model: std::mem::take(&mut self.model),
            id: self.id.take(),
            raw: self.raw.take(),
        })
    }
}

impl Machine for Reader {
    fn frame(&mut self, name: &str, event: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        let number = json::count(event, "/index");
        let nothing = Value::Null;
        let message = event.pointer("/delta/message").unwrap_or(&nothing);
        let member = |name: &str| message.get(name).unwrap_or(&nothing);
        match json::text(event, "/type").unwrap_or(name) {
            "message-start" => {
                self.id = json::text(event, "/id").map(str::to_owned);
                Ok(())
            }
            "content-start" => self.block(member("content"), out),
            "content-delta" => self.piece(member("content"), out),
            "content-end" => {
                self.close();
                Ok(())
            }
            "tool-plan-delta" => self.message(message, out),
            "tool-call-start" => self.begin_call(number, member("tool_calls"), out),
            "tool-call-delta" => self.arguments(number, member("tool_calls"), out),
            "citation-start" => self.raw.push("citations", member("citations").clone()),
            "message-end" => {
                self.end_of_message(event.get("delta").unwrap_or(&nothing))?;
                out.push(Event::Answer(Box::new(self.finish()?)));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self, _out: &mut Vec<Event>) -> Result<(), CallError> {
        Ok(())
    }

    fn document(&mut self, document: &Value) -> Result<Answer, CallError> {
        self.whole(document)
    }
}

fn ended(kind: CallErrorKind, error: &str) -> CallError {
    let mut error = failure::answer(error);
    error.kind = kind;
    error
}

/// The counts of the model. What is billed may differ, and stays in the raw usage.
fn read_usage(usage: &Value) -> Usage {
    let input = count(usage, "/tokens/input_tokens").or_else(|| count(usage, "/billed_units/input_tokens"));
    let output = count(usage, "/tokens/output_tokens").or_else(|| count(usage, "/billed_units/output_tokens"));
    let input = input.unwrap_or_default();
    Usage {
        input,
        output: output.unwrap_or_default(),
        cache_read: count(usage, "/cached_tokens").unwrap_or_default().min(input),
        cache_write: 0,
        reasoning: 0,
    }
}

/// The protocol counts in decimal numbers.
fn count(usage: &Value, pointer: &str) -> Option<u64> {
    let number = usage.pointer(pointer)?;
    // The conversion keeps to the bounds of the integer.
    number.as_u64().or_else(|| number.as_f64().map(|number| number as u64))
}
