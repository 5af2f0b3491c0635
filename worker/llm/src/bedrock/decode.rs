//! Answers of `converse`, whole or as events.

use std::collections::BTreeMap;

use atlas_model::{Answer, CallError, Request, Stop, Usage};
use http::HeaderMap;
use serde_json::{Value, json};

use crate::assembly::Assembly;
use crate::bounds::{ANSWER_BYTES_MAX, PARTS_MAX};
use crate::decoder::Machine;
use crate::raw::Raw;
use crate::{Event, failure, json};

/// Counts of [`Usage`], and one that is their sum.
const COUNTS: [&str; 5] =
    ["inputTokens", "outputTokens", "totalTokens", "cacheReadInputTokens", "cacheWriteInputTokens"];

/// An answer as it forms.
#[derive(Debug)]
pub(super) struct Reader {
    assembly: Assembly,
    /// The blocks by the provider's numbers.
    blocks: BTreeMap<u64, Block>,
    /// The block that began last and has not ended.
    open: Option<u64>,
    id: Option<String>,
    model: String,
    stop: Option<String>,
    usage: Usage,
    raw: Raw,
}

#[derive(Debug)]
enum Block {
    Text,
    Reasoning {
        signature: String,
    },
    /// A call by its number in the answer.
    Call(usize),
}

impl Reader {
    /// A reader for the answer to `request`. The id of the answer is in the headers.
    pub(super) fn new(request: &Request, headers: &HeaderMap) -> Self {
        let id = headers.get("x-amzn-requestid").and_then(|id| id.to_str().ok());
        Self {
            assembly: Assembly::new(request.messages.len()),
            blocks: BTreeMap::new(),
            open: None,
            id: id.map(str::to_owned),
            model: request.model.clone(),
            stop: None,
            usage: Usage::default(),
            raw: Raw::default(),
        }
    }

    /// Reads an answer that arrived whole.
    pub(super) fn whole(&mut self, answer: &Value) -> Result<Answer, CallError> {
        let content = answer.pointer("/output/message/content").and_then(Value::as_array);
        let content = content.ok_or_else(|| failure::of_document(answer, "the answer is no message with content"))?;
        let out = &mut Vec::new();
        for (number, block) in (0..).zip(content) {
            if let Some(call) = block.get("toolUse") {
                let index = self.begin_call(number, call, out)?;
                let input = call.get("input").cloned().unwrap_or_default();
                self.assembly.parsed_arguments(index, input, out)?;
            } else if let Some(reasoning) = block.pointer("/reasoningContent/reasoningText") {
                self.more(number, &json!({"reasoningContent": reasoning}), out)?;
            } else {
                self.more(number, block, out)?;
            }
            self.close()?;
        }
        self.members(answer, &["output"])?;
        self.finish()
    }

    /// Members of the answer, of the event that ends the message and of the one after it.
    fn members(&mut self, object: &Value, known: &[&str]) -> Result<(), CallError> {
        if let Some(reason) = json::text(object, "/stopReason") {
            self.stop = Some(reason.to_owned());
        }
        if let Some(counts) = object.get("usage").filter(|counts| counts.is_object()) {
            self.usage = usage(counts);
            let rest = json::unknown(counts, &COUNTS);
            if !rest.is_empty() {
                self.raw.member("usage", rest.into())?;
            }
        }
        // `p` is padding.
        let known: Vec<&str> = known.iter().copied().chain(["stopReason", "usage", "p"]).collect();
        self.raw.unknown(object, &known)
    }

    fn begin(&mut self, number: u64, block: Block) -> Result<(), CallError> {
        self.close()?;
        if self.blocks.len() >= PARTS_MAX {
            return Err(failure::answer(format!("the answer has more than {PARTS_MAX} blocks")));
        }
        self.blocks.insert(number, block);
        self.open = Some(number);
        Ok(())
    }

    fn begin_call(&mut self, number: u64, call: &Value, out: &mut Vec<Event>) -> Result<usize, CallError> {
        let text = |name: &str| call.get(name).and_then(Value::as_str).unwrap_or_default();
        self.close()?;
        let index = self.assembly.begin_call(text("toolUseId"), text("name"), out)?;
        self.begin(number, Block::Call(index))?;
        Ok(index)
    }

    /// More of a block. The first piece of a text or of reasoning begins it.
    fn more(&mut self, number: u64, delta: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        let other = || failure::answer(format!("a piece of block {number} that is of another type or has ended"));
        if let Some(text) = delta.get("text").and_then(Value::as_str) {
            match self.block(number, Block::Text)? {
                Some(Block::Text) => self.assembly.text(text, out),
                _ => Err(other()),
            }
        } else if let Some(reasoning) = delta.get("reasoningContent") {
            let Some(Block::Reasoning { signature }) =
                self.block(number, Block::Reasoning { signature: String::new() })?
            else {
                return Err(other());
            };
            let piece = json::text(reasoning, "/signature").unwrap_or_default();
            if signature.len().saturating_add(piece.len()) > ANSWER_BYTES_MAX {
                return Err(failure::answer(format!("a signature is larger than {ANSWER_BYTES_MAX} bytes")));
            }
            signature.push_str(piece);
            self.assembly.reasoning(json::text(reasoning, "/text").unwrap_or_default(), out)?;
            match reasoning.get("redactedContent") {
                Some(redacted) => self.assembly.reasoning_opaque(json!({"redactedContent": redacted})),
                None => Ok(()),
            }
        } else if let Some(call) = delta.get("toolUse") {
            match self.blocks.get(&number) {
                Some(Block::Call(index)) => {
                    let piece = json::text(call, "/input").unwrap_or_default();
                    self.assembly.arguments(*index, piece, out)
                }
                _ => Err(other()),
            }
        } else {
            self.raw.push("content", json!({"index": number, "delta": delta}))
        }
    }

    /// The open block of this number, begun as `new` if there is none. None if it has ended.
    fn block(&mut self, number: u64, new: Block) -> Result<Option<&mut Block>, CallError> {
        if !self.blocks.contains_key(&number) {
            self.begin(number, new)?;
        }
        Ok(if self.open == Some(number) { self.blocks.get_mut(&number) } else { None })
    }

    /// The open block is complete.
    fn close(&mut self) -> Result<(), CallError> {
        if let Some(Block::Reasoning { signature }) = self.open.take().and_then(|number| self.blocks.get_mut(&number))
            && !signature.is_empty()
        {
            self.assembly.reasoning_opaque(json!({"bedrockSignature": std::mem::take(signature)}))?;
        }
        self.assembly.close();
        Ok(())
    }

    fn finish(&mut self) -> Result<Answer, CallError> {
        self.close()?;
        failure::refuse_nothing(&self.assembly, self.stop.is_some())?;
        let stop = stop(self.stop.take());
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
        let number = json::count(event, "/contentBlockIndex");
        match name {
            "contentBlockStart" => match event.pointer("/start/toolUse") {
                Some(call) => self.begin_call(number, call, out).map(drop),
                None => Ok(()),
            },
            "contentBlockDelta" => self.more(number, event.get("delta").unwrap_or(&Value::Null), out),
            "contentBlockStop" => self.close(),
            "messageStop" => self.members(event, &[]),
            // The last event: what the answer used follows its end.
            "metadata" => {
                self.members(event, &[])?;
                self.end(out)
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), CallError> {
        if self.stop.is_some() {
            out.push(Event::Answer(Box::new(self.finish()?)));
        }
        Ok(())
    }

    fn document(&mut self, document: &Value) -> Result<Answer, CallError> {
        self.whole(document)
    }
}

/// The provider's `inputTokens` are those outside of the cache alone.
fn usage(counts: &Value) -> Usage {
    let count = |name: &str| counts.get(name).and_then(Value::as_u64).unwrap_or_default();
    let (cache_read, cache_write) = (count("cacheReadInputTokens"), count("cacheWriteInputTokens"));
    Usage {
        input: count("inputTokens").saturating_add(cache_read).saturating_add(cache_write),
        output: count("outputTokens"),
        cache_read,
        cache_write,
        reasoning: 0,
    }
}

fn stop(reason: Option<String>) -> Stop {
    match reason.as_deref() {
        Some("end_turn") => Stop::End,
        Some("tool_use") => Stop::Tools,
        Some("max_tokens" | "model_context_window_exceeded") => Stop::Length,
        Some("stop_sequence") => Stop::Text,
        Some("guardrail_intervened" | "content_filtered") => Stop::Refused,
        _ => Stop::Other(reason.unwrap_or_default()),
    }
}
