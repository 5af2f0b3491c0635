//! The body of a request.

use atlas_model::{Message, Part, Request, Role, Tool, ToolCall, ToolChoice};
use serde_json::{Map, Value, json};

use crate::body::{add_extra, put};
use crate::{EncodeError, image, json};

/// The member of the opaque value of reasoning that says where in the message it stood.
pub(super) const PLACE: &str = "cohere";
/// The plan that comes before tool calls.
pub(super) const TOOL_PLAN: &str = "tool_plan";
/// A block of the content.
pub(super) const THINKING: &str = "thinking";

pub(super) fn body(request: &Request) -> Result<Map<String, Value>, EncodeError> {
    let mut body = Map::new();
    body.insert("model".into(), request.model.clone().into());
    body.insert("messages".into(), messages(request)?.into());
    tools(&mut body, request);
    put(&mut body, "max_tokens", request.max_tokens);
    put(&mut body, "temperature", request.temperature);
    put(&mut body, "p", request.top_p);
    put(&mut body, "k", request.top_k);
    if !request.stop.is_empty() {
        body.insert("stop_sequences".into(), request.stop.clone().into());
    }
    if let Some(output) = &request.output {
        body.insert("response_format".into(), json!({"type": "json_object", "schema": output.schema}));
    }
    // The protocol knows no levels. A budget of tokens goes into `extra`.
    if request.reasoning_effort.is_some() {
        body.insert("thinking".into(), json!({"type": "enabled"}));
    }
    if request.stream {
        body.insert("stream".into(), true.into());
    }
    add_extra(&mut body, &request.extra);
    Ok(body)
}

/// The protocol cannot require a certain tool, so a required one is shown alone.
fn tools(body: &mut Map<String, Value>, request: &Request) {
    let (only, choice) = match &request.tool_choice {
        ToolChoice::Auto => (None, None),
        ToolChoice::None => (None, Some("NONE")),
        ToolChoice::Required => (None, Some("REQUIRED")),
        ToolChoice::Tool(name) => (Some(name), Some("REQUIRED")),
    };
    let shown = request.tools.iter().filter(|tool| only.is_none_or(|name| tool.name == *name));
    let tools: Vec<Value> = shown.map(tool).collect();
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
        put(body, "tool_choice", choice);
    }
}

fn tool(tool: &Tool) -> Value {
    let parameters = json::parameters(&tool.input_schema);
    let function = json!({"name": tool.name, "description": tool.description, "parameters": parameters});
    json!({"type": "function", "function": function})
}

fn messages(request: &Request) -> Result<Vec<Value>, EncodeError> {
    let mut list = Vec::new();
    if !request.system.is_empty() {
        list.push(json!({"role": "system", "content": request.system}));
    }
    for message in &request.messages {
        match message.role {
            Role::User => user(message, &mut list)?,
            Role::Assistant => list.extend(assistant(message)?),
        }
    }
    Ok(list)
}

fn user(message: &Message, list: &mut Vec<Value>) -> Result<(), EncodeError> {
    let mut content = Vec::new();
    for part in &message.parts {
        match part {
            Part::Text { text } => content.push(json!({"type": "text", "text": text})),
            Part::Image(image) => {
                content.push(json!({"type": "image_url", "image_url": {"url": image::data_url(image)?}}));
            }
            // Results are messages of their own, right behind the calls.
            Part::ToolResult(result) => {
                list.push(json!({"role": "tool", "tool_call_id": result.call, "content": result.content}));
            }
            Part::ToolCall(_) | Part::Reasoning { .. } => return Err(EncodeError::misplaced(Role::User)),
        }
    }
    if let [Part::Text { text }] = message.parts.as_slice() {
        list.push(json!({"role": "user", "content": text}));
    } else if !content.is_empty() {
        list.push(json!({"role": "user", "content": content}));
    }
    Ok(())
}

/// None for a message of which nothing is left to send.
fn assistant(message: &Message) -> Result<Option<Value>, EncodeError> {
    let (mut content, mut calls, mut plan) = (Vec::new(), Vec::new(), String::new());
    for part in &message.parts {
        match part {
            Part::Text { text } if text.is_empty() => {}
            Part::Text { text } => content.push(json!({"type": "text", "text": text})),
            Part::ToolCall(tool_call) => calls.push(call(tool_call)),
            // Reasoning of other providers has no place, and is left out.
            Part::Reasoning { text, opaque } => match opaque.get(PLACE).and_then(Value::as_str) {
                Some(TOOL_PLAN) => plan.push_str(text),
                Some(THINKING) => content.push(json!({"type": "thinking", "thinking": text})),
                _ => {}
            },
            Part::Image(_) | Part::ToolResult(_) => return Err(EncodeError::misplaced(Role::Assistant)),
        }
    }
    let mut out = Map::new();
    let members = [("tool_plan", Some(plan).filter(|plan| !plan.is_empty()).map(Value::from))];
    let lists = [("tool_calls", calls), ("content", content)].map(|(name, list)| (name, list_or_none(list)));
    for (name, value) in members.into_iter().chain(lists) {
        put(&mut out, name, value);
    }
    if out.is_empty() {
        return Ok(None);
    }
    out.insert("role".into(), "assistant".into());
    Ok(Some(out.into()))
}

fn list_or_none(list: Vec<Value>) -> Option<Value> {
    (!list.is_empty()).then(|| list.into())
}

fn call(call: &ToolCall) -> Value {
    let arguments = json::arguments(&call.arguments).to_string();
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}
