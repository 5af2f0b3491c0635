//! The answer, whole or as a stream of events. The last event of a stream repeats the whole answer, which is what counts; the
//! others only show it while it forms.

use std::collections::BTreeMap;

use atlas_model::{Answer, CallError, Stop};
use serde_json::Value;

use super::encode::ITEM;
use crate::assembly::Assembly;
use crate::decoder::Machine;
use crate::raw::Raw;
use crate::{Event, failure, json, openai};

/// Members of a response that are read, or that only repeat the request.
const RESPONSE: [&str; 27] = [
    "id",
    "object",
    "created_at",
    "completed_at",
    "status",
    "model",
    "output",
    "usage",
    "error",
    "incomplete_details",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "max_output_tokens",
    "text",
    "reasoning",
    "store",
    "truncation",
    "background",
    "max_tool_calls",
    "previous_response_id",
    "prompt_cache_key",
    "safety_identifier",
    "top_logprobs",
];

fn whole(response: &Value, model: String, messages: usize) -> Result<Answer, CallError> {
    if !response.is_object() || json::text(response, "/message").is_some() {
        return Err(failure::of_document(response, "the answer is no response with output"));
    }
    read(response, json::list(response, "/output"), model, Assembly::new(messages))
}

/// `output` is given apart: some servers leave it empty in the last event.
fn read(response: &Value, output: &[Value], model: String, mut assembly: Assembly) -> Result<Answer, CallError> {
    if let Some(error) = response.get("error").filter(|error| !error.is_null()) {
        return Err(failure::of_value(error));
    }
    let status = json::text(response, "/status").unwrap_or("completed");
    if !matches!(status, "completed" | "incomplete") {
        return Err(failure::answer(format!("the response ended with the status {status:?}")));
    }
    let mut raw = Raw::default();
    raw.unknown(response, &RESPONSE)?;
    let mut refused = false;
    for item in output {
        match json::text(item, "/type").unwrap_or_default() {
            "message" => refused |= message(item, &mut assembly)?,
            "function_call" => call(item, &mut assembly)?,
            "reasoning" => reasoning(item, &mut assembly)?,
            _ => raw.push("output", item.clone())?,
        }
    }
    let stop = match (status, json::text(response, "/incomplete_details/reason")) {
        ("incomplete", Some("max_output_tokens") | None) => Stop::Length,
        ("incomplete", Some("content_filter")) => Stop::Refused,
        ("incomplete", Some(other)) => Stop::Other(other.to_owned()),
        _ if assembly.calls() > 0 => Stop::Tools,
        _ if refused => Stop::Refused,
        _ => Stop::End,
    };
    // The status is the reason to stop.
    failure::refuse_nothing(&assembly, json::text(response, "/status").is_some())?;
    let usage = response.get("usage").unwrap_or(&Value::Null);
    Ok(Answer {
        parts: assembly.finish()?,
        stop,
        usage: openai::usage(usage, ["input_tokens", "output_tokens"]),
        model: json::text(response, "/model").map_or(model, str::to_owned),
        id: json::text(response, "/id").map(str::to_owned),
        raw: raw.take(),
    })
}

/// Texts of a message; true if one is a refusal.
fn message(item: &Value, assembly: &mut Assembly) -> Result<bool, CallError> {
    let (mut refused, ignored) = (false, &mut Vec::new());
    for piece in json::list(item, "/content") {
        let refusal = json::text(piece, "/refusal");
        refused |= refusal.is_some();
        assembly.text(refusal.or(json::text(piece, "/text")).unwrap_or_default(), ignored)?;
    }
    Ok(refused)
}

fn call(item: &Value, assembly: &mut Assembly) -> Result<(), CallError> {
    let ignored = &mut Vec::new();
    let text = |name: &str| json::text(item, name).unwrap_or_default();
    let index = assembly.begin_call(text("/call_id"), text("/name"), ignored)?;
    assembly.arguments(index, text("/arguments"), ignored)
}

fn reasoning(item: &Value, assembly: &mut Assembly) -> Result<(), CallError> {
    let ignored = &mut Vec::new();
    assembly.close();
    let pieces = json::list(item, "/summary").iter().chain(json::list(item, "/content"));
    let texts: Vec<&str> = pieces.filter_map(|piece| json::text(piece, "/text")).collect();
    assembly.reasoning(&texts.join("\n\n"), ignored)?;
    assembly.reasoning_opaque(Value::Object([(ITEM.to_owned(), item.clone())].into_iter().collect()))?;
    assembly.close();
    Ok(())
}

pub(super) struct State {
    model: String,
    messages: usize,
    /// Counts and bounds what is shown while the answer forms.
    shown: Assembly,
    /// Numbers of calls by their place in the output.
    calls: BTreeMap<u64, usize>,
    /// Finished items by their place in the output.
    items: BTreeMap<u64, Value>,
}

impl State {
    pub(super) fn new(model: String, messages: usize) -> Self {
        let shown = Assembly::new(messages);
        Self { model, messages, shown, calls: BTreeMap::new(), items: BTreeMap::new() }
    }

    fn finish(&mut self, response: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        let output = json::list(response, "/output");
        let items: Vec<Value> = std::mem::take(&mut self.items).into_values().collect();
        let output = if output.is_empty() { items.as_slice() } else { output };
        let answer = read(response, output, std::mem::take(&mut self.model), Assembly::new(self.messages))?;
        out.push(Event::Answer(Box::new(answer)));
        Ok(())
    }

    fn begin_item(&mut self, place: u64, item: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        if json::text(item, "/type") == Some("function_call") {
            let text = |name: &str| json::text(item, name).unwrap_or_default();
            let index = self.shown.begin_call(text("/call_id"), text("/name"), out)?;
            self.calls.insert(place, index);
        }
        Ok(())
    }

    fn end_item(&mut self, place: u64, item: &Value) -> Result<(), CallError> {
        self.shown.close();
        self.shown.reserve(std::slice::from_ref(item))?;
        self.items.insert(place, item.clone());
        Ok(())
    }
}

impl Machine for State {
    fn frame(&mut self, name: &str, event: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
        let piece = json::text(event, "/delta").unwrap_or_default();
        let place = json::count(event, "/output_index");
        let inner = |name: &str| event.get(name).unwrap_or(&Value::Null);
        match json::text(event, "/type").unwrap_or(name) {
            "response.output_text.delta" | "response.refusal.delta" => self.shown.text(piece, out),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.shown.reasoning(piece, out)
            }
            "response.output_item.added" => self.begin_item(place, inner("item"), out),
            "response.output_item.done" => self.end_item(place, inner("item")),
            "response.function_call_arguments.delta" => match self.calls.get(&place) {
                Some(index) => self.shown.arguments(*index, piece, out),
                // They are only shown; the last event repeats them.
                None => Ok(()),
            },
            "response.completed" | "response.incomplete" | "response.failed" => self.finish(inner("response"), out),
            _ => Ok(()),
        }
    }

    fn end(&mut self, _out: &mut Vec<Event>) -> Result<(), CallError> {
        Ok(())
    }

    fn document(&mut self, document: &Value) -> Result<Answer, CallError> {
        whole(document, std::mem::take(&mut self.model), self.messages)
    }
}
