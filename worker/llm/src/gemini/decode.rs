//! Answers of `generateContent` and of the pieces that `streamGenerateContent` sends.

use atlas_model::{Answer, CallError, CallErrorKind, Request, Stop, Usage};
use serde_json::{Map, Value, json};

use crate::assembly::Assembly;
use crate::decoder::Machine;
use crate::raw::Raw;
use crate::{Event, failure, json};

/// Reasons to stop that are a block by the provider's filter.
const BLOCKS: [&str; 7] =
    ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "MODEL_ARMOR"];

/// An answer as it forms. Each piece has the shape of a whole answer.
#[derive(Debug)]
pub(crate) struct Reader {
    assembly: Assembly,
    model: String,
    id: Option<String>,
    stop: Option<String>,
    /// Counts of a piece are totals; the last ones hold.
    usage: Value,
    has_candidate: bool,
    raw: Raw,
}

impl Reader {
    /// A reader for the answer to `request`.
    pub(crate) fn new(request: &Request) -> Self {
        Self {
            assembly: Assembly::new(request.messages.len()),
            model: request.model.clone(),
            id: None,
            stop: None,
            usage: Value::Null,
            has_candidate: false,
            raw: Raw::default(),
        }
    }

    /// Reads an answer that arrived whole.
    pub(crate) fn whole(&mut self, response: &Value) -> Result<Answer, CallError> {
        self.piece(response, &mut Vec::new())?;
        self.finish()
    }

    fn piece(&mut self, piece: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        if let Some(reason) = json::text(piece, "/promptFeedback/blockReason") {
            let detail = json::text(piece, "/promptFeedback/blockReasonMessage");
            return Err(blocked("request", reason, detail));
        }
        if let Some(usage) = piece.get("usageMetadata") {
            self.usage = usage.clone();
        }
        if let Some(model) = json::text(piece, "/modelVersion") {
            model.clone_into(&mut self.model);
        }
        if let Some(id) = json::text(piece, "/responseId") {
            self.id = Some(id.to_owned());
        }
        self.raw.unknown(piece, &["candidates", "usageMetadata", "modelVersion", "responseId"])?;
        let Some(candidate) = piece.pointer("/candidates/0") else { return Ok(()) };
        self.has_candidate = true;
        for part in json::list(candidate, "/content/parts") {
            self.part(part, out)?;
        }
        self.raw.unknown(candidate, &["content", "finishReason", "index"])?;
        if let Some(reason) = json::text(candidate, "/finishReason") {
            if BLOCKS.contains(&reason) {
                return Err(blocked("answer", reason, json::text(candidate, "/finishMessage")));
            }
            self.stop = Some(reason.to_owned());
        }
        Ok(())
    }

    fn part(&mut self, part: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        let signature = part.get("thoughtSignature").filter(|signature| !signature.is_null());
        if let Some(call) = part.get("functionCall") {
            return self.call(call, signature, out);
        }
        let Some(text) = part.get("text").and_then(Value::as_str) else {
            return self.raw.push("parts", part.clone());
        };
        let is_thought = part.get("thought").and_then(Value::as_bool).unwrap_or_default();
        if is_thought {
            self.assembly.reasoning(text, out)?;
        } else {
            self.assembly.text(text, out)?;
        }
        if let Some(signature) = signature {
            // The signature of a text has no place in it: it follows as reasoning without text.
            if !is_thought || text.is_empty() {
                self.assembly.close();
            }
            self.assembly.reasoning_opaque(json!({"thoughtSignature": signature}))?;
            self.assembly.close();
        }
        Ok(())
    }

    fn call(&mut self, call: &Value, signature: Option<&Value>, out: &mut Vec<Event>) -> Result<(), CallError> {
        let text = |name: &str| call.get(name).and_then(Value::as_str).unwrap_or_default();
        let index = self.assembly.begin_call(text("id"), text("name"), out)?;
        let args = call.get("args").filter(|args| !args.is_null());
        self.assembly.parsed_arguments(index, args.cloned().unwrap_or_else(|| json!({})), out)?;
        let mut opaque = Map::new();
        // An id that was made up here is not sent back.
        if self.assembly.call_id(index) == Some(text("id")) {
            opaque.insert("id".into(), text("id").into());
        }
        if let Some(signature) = signature {
            opaque.insert("thoughtSignature".into(), signature.clone());
        }
        if opaque.is_empty() { Ok(()) } else { self.assembly.call_opaque(index, opaque.into()) }
    }

    fn finish(&mut self) -> Result<Answer, CallError> {
        if !self.has_candidate {
            return Err(failure::answer("the answer has no candidate"));
        }
        let known = [
            "promptTokenCount",
            "toolUsePromptTokenCount",
            "cachedContentTokenCount",
            "candidatesTokenCount",
            "thoughtsTokenCount",
            "totalTokenCount",
        ];
        let rest = json::unknown(&self.usage, &known);
        if !rest.is_empty() {
            self.raw.member("usageMetadata", rest.into())?;
        }
        failure::refuse_nothing(&self.assembly, self.stop.is_some())?;
        let stop = match self.stop.take().as_deref() {
            Some("STOP") if self.assembly.calls() > 0 => Stop::Tools,
            Some("STOP") => Stop::End,
            Some("MAX_TOKENS") => Stop::Length,
            reason => Stop::Other(reason.unwrap_or_default().to_owned()),
        };
        Ok(Answer {
            parts: self.assembly.finish()?,
            stop,
            usage: usage(&self.usage),
            model: std::mem::take(&mut self.model),
            id: self.id.take(),
            raw: self.raw.take(),
        })
    }
}

impl Machine for Reader {
    fn frame(&mut self, _name: &str, event: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        self.piece(event, out)
    }

    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), CallError> {
        // The stream has no last event: an answer with a reason to stop is complete.
        if self.stop.is_some() {
            out.push(Event::Answer(Box::new(self.finish()?)));
        }
        Ok(())
    }

    fn document(&mut self, document: &Value) -> Result<Answer, CallError> {
        self.whole(document)
    }
}

/// The counts of the request include what was cached; the counts of the candidates do not include thoughts.
fn usage(usage: &Value) -> Usage {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or_default();
    Usage {
        input: count("promptTokenCount").saturating_add(count("toolUsePromptTokenCount")),
        output: count("candidatesTokenCount").saturating_add(count("thoughtsTokenCount")),
        cache_read: count("cachedContentTokenCount"),
        cache_write: 0,
        reasoning: count("thoughtsTokenCount"),
    }
}

fn blocked(what: &str, reason: &str, detail: Option<&str>) -> CallError {
    let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
    let mut error = failure::answer(format!("the provider blocked the {what} ({reason}){detail}"));
    error.kind = CallErrorKind::Filtered;
    error
}
