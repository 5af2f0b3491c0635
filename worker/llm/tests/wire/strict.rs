//! What strict servers of other protocols accept.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::chat::KEY;
use crate::server::Seen;

/// Fails with the problem unless a condition holds.
pub(crate) fn ensure(condition: bool, problem: &str) -> Result<(), String> {
    if condition { Ok(()) } else { Err(problem.to_owned()) }
}

fn head(seen: &Seen, path: &str) -> Result<(), String> {
    ensure(seen.method == "POST" && seen.uri.path() == path, "method or path")?;
    ensure(seen.headers.get("content-type").is_some_and(|value| value == "application/json"), "content-type")
}

fn members(value: &Value, known: &[&str]) -> Result<(), String> {
    let object = value.as_object().ok_or_else(|| format!("{value} is no object"))?;
    object.iter().try_for_each(|(name, value)| {
        ensure(known.contains(&name.as_str()), &format!("unknown member {name}"))?;
        ensure(!value.is_null(), &format!("{name} is null"))
    })
}

fn text(value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| format!("{value} is no text"))
}

/// OpenAI responses: nothing is stored, and each output belongs to a call before it.
pub(crate) fn responses(seen: &Seen) -> Result<(), String> {
    head(seen, "/v1/responses")?;
    ensure(seen.headers.get("authorization").is_some_and(|value| *value == format!("Bearer {KEY}")), "authorization")?;
    let known = [
        "model",
        "instructions",
        "input",
        "max_output_tokens",
        "temperature",
        "top_p",
        "reasoning",
        "include",
        "tools",
        "tool_choice",
        "text",
        "store",
        "stream",
    ];
    members(&seen.body, &known)?;
    ensure(seen.body["store"] == false, "the answer would be stored")?;
    for tool in seen.body["tools"].as_array().into_iter().flatten() {
        members(tool, &["type", "name", "description", "parameters", "strict"])?;
        ensure(tool["strict"] == false && tool["parameters"]["type"] == "object", "a tool")?;
    }
    let mut open = BTreeSet::new();
    for item in seen.body["input"].as_array().ok_or("input is no list")? {
        match item["type"].as_str() {
            Some("message") => {
                let kind = if item["role"] == "assistant" { "output_text" } else { "input_text" };
                let parts = item["content"].as_array().ok_or("content is no list")?;
                parts.iter().try_for_each(|part| ensure(part["type"] == kind, "a part of a message"))?;
            }
            Some("function_call") => {
                members(item, &["type", "call_id", "name", "arguments"])?;
                let arguments: Value =
                    serde_json::from_str(&text(&item["arguments"])?).map_err(|error| error.to_string())?;
                ensure(arguments.is_object() && open.insert(text(&item["call_id"])?), "a call")?;
            }
            Some("function_call_output") => {
                text(&item["output"])?;
                ensure(open.remove(&text(&item["call_id"])?), "an output of no call")?;
            }
            other => return Err(format!("an item {other:?}")),
        }
    }
    ensure(open.is_empty(), "a call without an output")
}

/// Ollama: settings in `options`, arguments as objects, and results that name their tool.
pub(crate) fn ollama(seen: &Seen) -> Result<(), String> {
    head(seen, "/api/chat")?;
    members(&seen.body, &["model", "messages", "stream", "tools", "format", "think", "options", "keep_alive"])?;
    if let Some(options) = seen.body.get("options") {
        members(options, &["num_predict", "temperature", "top_p", "top_k", "stop", "num_ctx"])?;
    }
    let mut open = BTreeSet::new();
    for message in seen.body["messages"].as_array().ok_or("messages are no list")? {
        members(message, &["role", "content", "images", "tool_calls", "thinking", "tool_name", "tool_call_id"])?;
        text(&message["content"])?;
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            ensure(call["function"]["arguments"].is_object(), "arguments are no object")?;
            open.insert(text(&call["function"]["name"])?);
        }
        if message["role"] == "tool" {
            ensure(open.remove(&text(&message["tool_name"])?), "a result of no call")?;
        }
    }
    ensure(open.is_empty(), "a call without a result")
}
