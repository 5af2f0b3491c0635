//! The request as HTTP.

use atlas_model::{Message, Part, Request, Role, ToolChoice};
use serde_json::{Map, Value, json};

use super::Ollama;
use crate::body::{add_extra, put};
use crate::{EncodeError, Endpoint, Parts, image, json as write};

pub(super) fn parts(ollama: &Ollama, endpoint: &Endpoint, request: &Request) -> Result<Parts, EncodeError> {
    let mut parts = Parts::post(endpoint.url("/api/chat"), &body(request)?);
    let forced = matches!(request.tool_choice, ToolChoice::Required | ToolChoice::Tool(_));
    parts.leave_out(&[("tool_choice", forced && !request.tools.is_empty())]);
    if let Some(key) = &ollama.key {
        parts.bearer(key)?;
    }
    parts.endpoint_headers(endpoint)?;
    Ok(parts)
}

fn body(request: &Request) -> Result<Value, EncodeError> {
    let mut body = Map::new();
    let mut set = |name: &str, value: Option<Value>| put(&mut body, name, value);
    set("model", Some(json!(request.model)));
    set("messages", Some(messages(request)?));
    set("stream", Some(json!(request.stream)));
    // The protocol cannot forbid calls, so tools that must not be called are not shown.
    let tools = Some(&request.tools).filter(|tools| !tools.is_empty() && request.tool_choice != ToolChoice::None);
    set("tools", tools.map(|tools| tools.iter().map(tool).collect()));
    set("format", request.output.as_ref().map(|output| output.schema.clone()));
    set("think", request.reasoning_effort.as_ref().map(|effort| json!(effort)));
    set("options", Some(options(request)).filter(|options| !options.is_empty()).map(Value::Object));
    add_extra(&mut body, &request.extra);
    Ok(Value::Object(body))
}

fn options(request: &Request) -> Map<String, Value> {
    let settings = [
        ("num_predict", request.max_tokens.map(|limit| json!(limit))),
        ("temperature", request.temperature.map(|value| json!(value))),
        ("top_p", request.top_p.map(|value| json!(value))),
        ("top_k", request.top_k.map(|value| json!(value))),
        ("stop", (!request.stop.is_empty()).then(|| json!(request.stop))),
    ];
    settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn tool(tool: &atlas_model::Tool) -> Value {
    let parameters = write::parameters(&tool.input_schema);
    json!({
        "type": "function",
        "function": { "name": tool.name, "description": tool.description, "parameters": parameters },
    })
}

fn messages(request: &Request) -> Result<Value, EncodeError> {
    let mut list = Vec::new();
    if !request.system.is_empty() {
        list.push(json!({ "role": "system", "content": request.system }));
    }
    for message in &request.messages {
        add(message, &mut list)?;
    }
    Ok(Value::Array(list))
}

fn add(message: &Message, list: &mut Vec<Value>) -> Result<(), EncodeError> {
    let (mut images, mut calls, mut thinking) = (Vec::new(), Vec::new(), String::new());
    let results = list.len();
    for part in &message.parts {
        match (message.role, part) {
            (_, Part::Text { .. }) => {}
            (Role::User, Part::Image(picture)) => {
                image::check(picture)?;
                images.push(json!(picture.data));
            }
            (Role::User, Part::ToolResult(result)) => list.push(json!({
                "role": "tool",
                "content": result.content,
                "tool_name": result.name,
                "tool_call_id": result.call,
            })),
            (Role::Assistant, Part::ToolCall(call)) => calls.push(json!({
                "id": call.id,
                "function": { "name": call.name, "arguments": write::arguments(&call.arguments) },
            })),
            (Role::Assistant, Part::Reasoning { text, .. }) => thinking.push_str(text),
            (role, _) => return Err(EncodeError::misplaced(role)),
        }
    }
    let text = message.text();
    if text.is_empty() && images.is_empty() && list.len() > results {
        return Ok(());
    }
    let role = if message.role == Role::User { "user" } else { "assistant" };
    let mut out = json!({ "role": role, "content": text });
    let members = [("images", images), ("tool_calls", calls)];
    for (name, values) in members.into_iter().filter(|(_, values)| !values.is_empty()) {
        out[name] = Value::Array(values);
    }
    if !thinking.is_empty() {
        out["thinking"] = json!(thinking);
    }
    list.push(out);
    Ok(())
}
