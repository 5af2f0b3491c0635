//! Answers of the messages protocol, whole or as events.

use std::collections::BTreeMap;

use atlas_model::{Answer, CallError, Request, Stop, Usage};
use serde_json::{Map, Value, json};

use crate::assembly::Assembly;
use crate::bounds::{ANSWER_BYTES_MAX, PARTS_MAX};
use crate::decoder::Machine;
use crate::raw::Raw;
use crate::{Event, failure, json};

/// An answer as it forms.
#[derive(Debug)]
pub(crate) struct Reader {
    assembly: Assembly,
    /// The blocks by the provider's numbers.
    blocks: BTreeMap<u64, Block>,
    /// The block that began last and has not ended.
    open: Option<u64>,
    started: bool,
    id: Option<String>,
    model: String,
    stop: Option<String>,
    usage: Map<String, Value>,
    raw: Raw,
}

#[derive(Debug)]
enum Block {
    Text,
    /// The block without its text, to be sent back. Redacted reasoning has no text.
    Reasoning(Map<String, Value>),
    /// A call and the arguments that its block began with. Arguments that arrive later replace them.
    Call(usize, Value),
    /// A block of a type that has no part, for example a search by the provider.
    Other,
}

impl Reader {
    /// A reader for the answer to `request`.
    pub(crate) fn new(request: &Request) -> Self {
        Self {
            assembly: Assembly::new(request.messages.len()),
            blocks: BTreeMap::new(),
            open: None,
            started: false,
            id: None,
            model: request.model.clone(),
            stop: None,
            usage: Map::new(),
            raw: Raw::default(),
        }
    }

    /// Reads an answer that arrived whole.
    pub(crate) fn whole(&mut self, message: &Value) -> Result<Answer, CallError> {
        self.start(message, &mut Vec::new())?;
        self.close()?;
        self.finish()
    }

    /// The message begins, or is whole.
    fn start(&mut self, message: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        let content = message.get("content").and_then(Value::as_array);
        let content = content.ok_or_else(|| failure::of_document(message, "the answer is no message with content"))?;
        self.started = true;
        for (number, block) in (0..).zip(content) {
            self.begin(number, block, out)?;
        }
        self.id = json::text(message, "/id").map(str::to_owned).or_else(|| self.id.take());
        if let Some(model) = json::text(message, "/model") {
            model.clone_into(&mut self.model);
        }
        self.members(message, &["content", "id", "model"])
    }

    /// Members of the message, and of the event that ends it.
    fn members(&mut self, object: &Value, known: &[&str]) -> Result<(), CallError> {
        if let Some(reason) = json::text(object, "/stop_reason") {
            self.stop = Some(reason.to_owned());
        }
        self.count(object.get("usage"))?;
        let known: Vec<&str> = known.iter().copied().chain(["type", "role", "stop_reason", "usage"]).collect();
        self.raw.unknown(object, &known)
    }

    /// Counts of a stream are totals. The largest one holds, because some servers send zeros in one of the two places.
    fn count(&mut self, usage: Option<&Value>) -> Result<(), CallError> {
        for (name, value) in usage.and_then(Value::as_object).into_iter().flatten() {
            let known = self.usage.get(name).and_then(Value::as_u64);
            if !value.is_null() && (known.is_none() || value.as_u64() > known) {
                self.raw.charge(name, value)?;
                self.usage.insert(name.clone(), value.clone());
            }
        }
        Ok(())
    }

    /// A block begins, or is whole.
    fn begin(&mut self, number: u64, block: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        self.close()?;
        if self.blocks.len() >= PARTS_MAX {
            return Err(failure::answer(format!("the answer has more than {PARTS_MAX} blocks")));
        }
        let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        let (begun, known): (Block, &[&str]) = match text("type") {
            "text" => {
                self.assembly.text(text("text"), out)?;
                (Block::Text, &["type", "text"])
            }
            "thinking" | "redacted_thinking" => {
                self.assembly.reasoning(text("thinking"), out)?;
                (Block::Reasoning(json::unknown(block, &["thinking"])), &[])
            }
            "tool_use" => {
                let index = self.assembly.begin_call(text("id"), text("name"), out)?;
                let input = block.get("input").cloned().unwrap_or_default();
                (Block::Call(index, input), &["type", "id", "name", "input"])
            }
            _ => (Block::Other, &[]),
        };
        if !matches!(begun, Block::Reasoning(_)) {
            self.rest(number, json::unknown(block, known))?;
        }
        self.blocks.insert(number, begun);
        self.open = Some(number);
        Ok(())
    }

    /// Keeps the members of a block that have no place.
    fn rest(&mut self, number: u64, mut rest: Map<String, Value>) -> Result<(), CallError> {
        if rest.is_empty() {
            return Ok(());
        }
        rest.insert("index".into(), number.into());
        self.raw.push("content", rest.into())
    }

    /// More of a block.
    fn more(&mut self, number: u64, delta: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        let is_open = self.open == Some(number);
        let block = self.blocks.get_mut(&number);
        let block = block.ok_or_else(|| failure::answer(format!("a piece of block {number}, which has not begun")))?;
        let text = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
        match (block, text("type")) {
            (Block::Text, "text_delta") if is_open => self.assembly.text(text("text"), out),
            (Block::Reasoning(_), "thinking_delta") if is_open => self.assembly.reasoning(text("thinking"), out),
            (Block::Reasoning(rest), "signature_delta") if is_open => {
                let piece = text("signature");
                if let Value::String(signature) = rest.entry("signature").or_insert_with(|| "".into()) {
                    if signature.len().saturating_add(piece.len()) > ANSWER_BYTES_MAX {
                        return Err(failure::answer(format!("a signature is larger than {ANSWER_BYTES_MAX} bytes")));
                    }
                    signature.push_str(piece);
                }
                Ok(())
            }
            (Block::Call(index, _), "input_json_delta") => self.assembly.arguments(*index, text("partial_json"), out),
            (_, "text_delta" | "thinking_delta" | "signature_delta" | "input_json_delta") => {
                Err(failure::answer(format!("a piece of block {number} that is of another type or has ended")))
            }
            _ => self.raw.push("content", json!({"index": number, "delta": delta})),
        }
    }

    /// The open block is complete.
    fn close(&mut self) -> Result<(), CallError> {
        let block = self.open.take().and_then(|number| self.blocks.get_mut(&number));
        match block {
            // Without one of the two the provider does not take its reasoning back.
            Some(Block::Reasoning(rest)) if ["signature", "data"].iter().any(|name| is_text(rest.get(*name))) => {
                self.assembly.reasoning_opaque(std::mem::take(rest).into())?;
            }
            Some(Block::Call(index, input)) => {
                let has_arguments = self.assembly.arguments_so_far(*index).is_none_or(|text| !text.is_empty());
                if !has_arguments && !input.is_null() {
                    self.assembly.parsed_arguments(*index, std::mem::take(input), &mut Vec::new())?;
                }
            }
            Some(Block::Reasoning(_) | Block::Text | Block::Other) | None => {}
        }
        self.assembly.close();
        Ok(())
    }

    fn finish(&mut self) -> Result<Answer, CallError> {
        if !self.started {
            return Err(failure::answer("the answer ended before it began"));
        }
        self.close()?;
        let usage = usage(&mut self.usage);
        if !self.usage.is_empty() {
            self.raw.member("usage", std::mem::take(&mut self.usage).into())?;
        }
        failure::refuse_nothing(&self.assembly, self.stop.is_some())?;
        let stop = stop(self.stop.take());
        Ok(Answer {
            parts: self.assembly.finish()?,
            stop,
            usage,
            model: std::mem::take(&mut self.model),
            id: self.id.take(),
            raw: self.raw.take(),
        })
    }
}

impl Machine for Reader {
    fn frame(&mut self, name: &str, event: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        let number = json::count(event, "/index");
        let member = |name: &str| event.get(name).unwrap_or(&Value::Null);
        match json::text(event, "/type").unwrap_or(name) {
            "message_start" => self.start(member("message"), out),
            "content_block_start" => self.begin(number, member("content_block"), out),
            "content_block_delta" => self.more(number, member("delta"), out),
            "content_block_stop" => self.close(),
            "message_delta" => {
                self.members(member("delta"), &[])?;
                self.members(event, &["delta"])
            }
            "message_stop" => {
                out.push(Event::Answer(Box::new(self.finish()?)));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), CallError> {
        // Some servers leave out the last event; the reason to stop is then the end.
        if self.stop.is_some() {
            out.push(Event::Answer(Box::new(self.finish()?)));
        }
        Ok(())
    }

    fn document(&mut self, document: &Value) -> Result<Answer, CallError> {
        self.whole(document)
    }
}

fn is_text(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).is_some_and(|text| !text.is_empty())
}

/// Takes what it counts. The provider's `input_tokens` are those outside its cache alone.
fn usage(counts: &mut Map<String, Value>) -> Usage {
    let mut take = |name: &str| counts.remove(name).and_then(|value| value.as_u64()).unwrap_or_default();
    let (input, output) = (take("input_tokens"), take("output_tokens"));
    let (cache_read, cache_write) = (take("cache_read_input_tokens"), take("cache_creation_input_tokens"));
    let details = counts.get("output_tokens_details");
    let reasoning = details.and_then(|details| details.get("thinking_tokens")).and_then(Value::as_u64);
    Usage {
        input: input.saturating_add(cache_read).saturating_add(cache_write),
        output,
        cache_read,
        cache_write,
        reasoning: reasoning.unwrap_or_default(),
    }
}

fn stop(reason: Option<String>) -> Stop {
    match reason.as_deref() {
        Some("end_turn") => Stop::End,
        Some("max_tokens" | "model_context_window_exceeded") => Stop::Length,
        Some("tool_use") => Stop::Tools,
        Some("stop_sequence") => Stop::Text,
        Some("refusal") => Stop::Refused,
        _ => Stop::Other(reason.unwrap_or_default()),
    }
}
