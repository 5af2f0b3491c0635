//! The answer, whole or as a stream of chunks. A whole message is read like a single chunk.

use std::collections::BTreeMap;

use atlas_model::{Answer, CallError, Request, Stop, Usage};
use serde_json::{Map, Value};

use super::encode::{DETAILS, EXTRA, FIELD, MODEL};
use super::shape::Shape;
use crate::assembly::Assembly;
use crate::bounds::CALLS_MAX;
use crate::decoder::Machine;
use crate::raw::Raw;
use crate::{Event, failure, json, openai};

const CHUNK: [&str; 8] = ["id", "object", "created", "model", "choices", "usage", "obfuscation", "error"];
const CHOICE: [&str; 5] = ["index", "delta", "message", "finish_reason", "usage"];
const MESSAGE: [&str; 8] =
    ["role", "content", "refusal", "tool_calls", "reasoning", "reasoning_content", DETAILS, "function_call"];

/// Maximum number of numbers of calls: some servers use two for each call.
const NUMBERS_MAX: usize = 2 * CALLS_MAX;

pub(super) struct State {
    assembly: Assembly,
    /// Calls by the number that the server gives them.
    calls: BTreeMap<u64, Open>,
    /// The arguments of each call.
    shapes: Vec<Shape>,
    details: Vec<Value>,
    /// The member of the message that reasoning came in.
    field: Option<&'static str>,
    model: String,
    /// The model that was asked, which may have another name in the answer.
    asked: String,
    id: Option<String>,
    usage: Usage,
    stop: Option<Stop>,
    raw: Raw,
}

/// A call that takes more arguments.
struct Open {
    index: usize,
    /// The id that the server sent with its beginning.
    id: String,
    /// Its name has arrived.
    has_name: bool,
}

impl State {
    pub(super) fn new(request: &Request) -> Self {
        Self {
            assembly: Assembly::new(request.messages.len()),
            calls: BTreeMap::new(),
            shapes: Vec::new(),
            details: Vec::new(),
            field: None,
            model: request.model.clone(),
            asked: request.model.clone(),
            id: None,
            usage: Usage::default(),
            stop: None,
            raw: Raw::default(),
        }
    }

    pub(super) fn whole(&mut self, value: &Value) -> Result<Answer, CallError> {
        if json::list(value, "/choices").is_empty() {
            return Err(failure::of_document(value, "the answer has no choices"));
        }
        self.chunk(value, &mut Vec::new())?;
        self.answer()
    }

    fn chunk(&mut self, value: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        // A server's own form of an error, where a chunk would have choices.
        if value.get("choices").is_none()
            && ["/message", "/detail", "/msg"].iter().any(|at| json::text(value, at).is_some())
        {
            return Err(failure::of_value(value));
        }
        if let Some(model) = json::text(value, "/model") {
            model.clone_into(&mut self.model);
        }
        if let Some(id) = json::text(value, "/id") {
            self.id = Some(id.to_owned());
        }
        for pointer in ["/choices/0/usage", "/x_groq/usage", "/usage"] {
            if let Some(usage) = value.pointer(pointer).filter(|usage| usage.is_object()) {
                self.usage = openai::usage(usage, ["prompt_tokens", "completion_tokens"]);
            }
        }
        self.raw.unknown(value, &CHUNK)?;
        let choices = json::list(value, "/choices").iter();
        // Other choices exist only if the extra members ask for them.
        for choice in choices.filter(|choice| json::count(choice, "/index") == 0) {
            self.choice(choice, out)?;
        }
        Ok(())
    }

    fn choice(&mut self, choice: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        self.raw.unknown(choice, &CHOICE)?;
        for message in ["delta", "message"].iter().filter_map(|name| choice.get(name)) {
            self.raw.unknown(message, &MESSAGE)?;
            self.message(message, out)?;
        }
        if let Some(reason) = json::text(choice, "/finish_reason") {
            self.finish_reason(reason, choice);
        }
        Ok(())
    }

    fn message(&mut self, message: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        self.reasoning(message, out)?;
        self.content(message, out)?;
        if let Some(refusal) = json::text(message, "/refusal") {
            self.assembly.text(refusal, out)?;
            self.stop = Some(Stop::Refused);
        }
        for fragment in json::list(message, "/tool_calls") {
            self.fragment(fragment, out)?;
        }
        Ok(())
    }

    fn reasoning(&mut self, message: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        let details = json::list(message, &format!("/{DETAILS}"));
        if !details.is_empty() {
            self.assembly.reserve(details)?;
            self.details.extend(details.iter().cloned());
        }
        // Servers that send both members send the same text twice.
        let field = ["reasoning_content", "reasoning"]
            .into_iter()
            .find(|name| json::text(message, &format!("/{name}")).is_some());
        if let Some(field) = field {
            self.assembly.reasoning(json::text(message, &format!("/{field}")).unwrap_or_default(), out)?;
            self.field = Some(field);
        }
        Ok(())
    }

    /// Text, or a list of parts as some servers send it.
    fn content(&mut self, message: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        if let Some(text) = json::text(message, "/content") {
            self.assembly.text(text, out)?;
        }
        for part in json::list(message, "/content") {
            if let Some(text) = json::text(part, "/text") {
                self.assembly.text(text, out)?;
            }
            for thought in json::list(part, "/thinking") {
                self.assembly.reasoning(json::text(thought, "/text").unwrap_or_default(), out)?;
            }
        }
        Ok(())
    }

    /// A piece of a call. Servers differ: some send no number, some the same number for every call, some two numbers for one
    /// call, some the name behind the id, some arguments as an object.
    fn fragment(&mut self, fragment: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        let id = json::text(fragment, "/id").unwrap_or_default();
        let name = json::text(fragment, "/function/name").unwrap_or_default();
        let arguments = fragment.pointer("/function/arguments").filter(|arguments| !arguments.is_null());
        let number = fragment.get("index").and_then(Value::as_u64).unwrap_or_else(|| self.number(id, name));
        let index = match self.calls.get(&number) {
            Some(open) if !self.begins(open, id, name, arguments) => open.index,
            Some(_) => self.begin(number, id, name, out)?,
            None => match self.unfinished(id, name) {
                Some(_) if self.calls.len() >= NUMBERS_MAX => {
                    return Err(failure::answer(format!("the answer numbers more than {NUMBERS_MAX} tool calls")));
                }
                Some(index) => {
                    self.calls.insert(number, Open { index, id: id.to_owned(), has_name: true });
                    index
                }
                None if id.is_empty() && name.is_empty() && arguments.is_none() => return Ok(()),
                None => self.begin(number, id, name, out)?,
            },
        };
        if !name.is_empty() {
            self.assembly.name_call(index, name, out)?;
            self.calls.values_mut().filter(|open| open.index == index).for_each(|open| open.has_name = true);
        }
        if let Some(extra) = fragment.get(EXTRA).filter(|extra| !extra.is_null()) {
            let opaque =
                Map::from_iter([(EXTRA.to_owned(), extra.clone()), (MODEL.to_owned(), self.asked.clone().into())]);
            self.assembly.call_opaque(index, opaque.into())?;
        }
        let shape = self.shapes.get_mut(index);
        match arguments {
            Some(Value::String(text)) => {
                shape.into_iter().for_each(|shape| shape.push(text));
                self.assembly.arguments(index, text, out)
            }
            None => Ok(()),
            Some(value) => {
                shape.into_iter().for_each(|shape| *shape = Shape::whole());
                self.assembly.parsed_arguments(index, value.clone(), out)
            }
        }
    }

    /// The number of a piece that has none: a name begins a call, and other pieces belong to the last one.
    fn number(&self, id: &str, name: &str) -> u64 {
        let Some((last, open)) = self.calls.last_key_value() else { return 0 };
        let is_begin = !name.is_empty() && open.has_name || name.is_empty() && self.begins(open, id, name, None);
        if is_begin { last.saturating_add(1) } else { *last }
    }

    /// Whether a piece under the number of an open call begins another call. Some servers change the id with each piece, so an
    /// id without a name begins one only behind complete arguments.
    fn begins(&self, open: &Open, id: &str, name: &str, arguments: Option<&Value>) -> bool {
        if id.is_empty() || open.id.is_empty() || open.id == id || !open.has_name {
            return false;
        }
        let is_complete = || self.shapes.get(open.index).is_none_or(Shape::is_whole);
        let has_arguments = arguments.is_some_and(|arguments| arguments.as_str() != Some(""));
        !name.is_empty() || !has_arguments && is_complete()
    }

    fn begin(&mut self, number: u64, id: &str, name: &str, out: &mut Vec<Event>) -> Result<usize, CallError> {
        let index = self.assembly.begin_call(id, name, out)?;
        self.shapes.push(Shape::default());
        self.calls.insert(number, Open { index, id: id.to_owned(), has_name: !name.is_empty() });
        Ok(index)
    }

    /// The call of this id whose arguments are not complete, under whatever number. A piece with another name is another call:
    /// some servers give all calls one id.
    fn unfinished(&self, id: &str, name: &str) -> Option<usize> {
        let is_open = |index: usize| self.shapes.get(index).is_some_and(|shape| !shape.is_whole());
        let has_name = |index: usize| {
            let own = self.assembly.call_name(index).unwrap_or_default();
            [own, name].iter().any(|name| name.is_empty()) || own == name
        };
        let mut of_id = self.calls.values().filter(|open| !id.is_empty() && open.id == id).map(|open| open.index);
        of_id.find(|index| is_open(*index) && has_name(*index))
    }

    fn finish_reason(&mut self, reason: &str, choice: &Value) {
        // A refusal has been read from the message.
        if self.stop.is_some() {
            return;
        }
        self.stop = Some(match reason {
            // vLLM names the text that ended the answer.
            "stop" if json::text(choice, "/stop_reason").is_some() => Stop::Text,
            "stop" | "eos" | "end_turn" => Stop::End,
            "length" | "max_tokens" | "model_length" => Stop::Length,
            "tool_calls" | "function_call" => Stop::Tools,
            "content_filter" => Stop::Refused,
            other => Stop::Other(other.to_owned()),
        });
    }

    fn answer(&mut self) -> Result<Answer, CallError> {
        let mut opaque = Map::new();
        opaque.extend(self.field.map(|field| (FIELD.to_owned(), Value::from(field))));
        if !self.details.is_empty() {
            opaque.insert(DETAILS.to_owned(), Value::Array(std::mem::take(&mut self.details)));
        }
        if !opaque.is_empty() {
            self.assembly.first_reasoning_opaque(Value::Object(opaque))?;
        }
        failure::refuse_nothing(&self.assembly, self.stop.is_some())?;
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

impl Machine for State {
    fn frame(&mut self, _name: &str, event: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        self.chunk(event, out)
    }

    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), CallError> {
        if self.stop.is_some() {
            out.push(Event::Answer(Box::new(self.answer()?)));
        }
        Ok(())
    }

    fn document(&mut self, document: &Value) -> Result<Answer, CallError> {
        self.whole(document)
    }
}
