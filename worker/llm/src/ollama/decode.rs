//! The answer, whole or as one line for each piece. Both have the same form.

use atlas_model::{Answer, CallError, Request, Stop, Usage};
use serde_json::Value;

use crate::assembly::Assembly;
use crate::decoder::Machine;
use crate::raw::Raw;
use crate::{Event, failure, json};

const LINE: [&str; 8] =
    ["model", "created_at", "message", "done", "done_reason", "prompt_eval_count", "eval_count", "error"];

pub(super) struct State {
    assembly: Assembly,
    model: String,
    raw: Raw,
}

impl State {
    pub(super) fn new(request: &Request) -> Self {
        Self { assembly: Assembly::new(request.messages.len()), model: request.model.clone(), raw: Raw::default() }
    }

    pub(super) fn whole(&mut self, value: &Value) -> Result<Answer, CallError> {
        self.piece(value, &mut Vec::new())?;
        self.answer(value)
    }

    fn piece(&mut self, value: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        if let Some(model) = json::text(value, "/model") {
            model.clone_into(&mut self.model);
        }
        self.raw.unknown(value, &LINE)?;
        let text = |pointer: &str| json::text(value, pointer).unwrap_or_default();
        self.assembly.reasoning(text("/message/thinking"), out)?;
        self.assembly.text(text("/message/content"), out)?;
        for call in json::list(value, "/message/tool_calls") {
            let text = |pointer: &str| json::text(call, pointer).unwrap_or_default();
            let index = self.assembly.begin_call(text("/id"), text("/function/name"), out)?;
            if let Some(arguments) = call.pointer("/function/arguments") {
                self.assembly.parsed_arguments(index, arguments.clone(), out)?;
            }
        }
        Ok(())
    }

    fn answer(&mut self, last: &Value) -> Result<Answer, CallError> {
        let reason = json::text(last, "/done_reason");
        failure::refuse_nothing(&self.assembly, reason.is_some())?;
        let stop = match reason {
            Some("length") => Stop::Length,
            _ if self.assembly.calls() > 0 => Stop::Tools,
            None | Some("stop") => Stop::End,
            Some(other) => Stop::Other(other.to_owned()),
        };
        let (input, output) = (json::count(last, "/prompt_eval_count"), json::count(last, "/eval_count"));
        Ok(Answer {
            parts: self.assembly.finish()?,
            stop,
            usage: Usage { input, output, ..Usage::default() },
            model: std::mem::take(&mut self.model),
            id: None,
            raw: self.raw.take(),
        })
    }
}

impl Machine for State {
    fn frame(&mut self, _name: &str, event: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        self.piece(event, out)?;
        if event.get("done") == Some(&Value::Bool(true)) {
            out.push(Event::Answer(Box::new(self.answer(event)?)));
        }
        Ok(())
    }

    fn end(&mut self, _out: &mut Vec<Event>) -> Result<(), CallError> {
        Ok(())
    }

    fn document(&mut self, document: &Value) -> Result<Answer, CallError> {
        self.whole(document)
    }
}
