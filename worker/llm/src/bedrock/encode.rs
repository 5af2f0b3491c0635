//! The body of `converse`.

use atlas_model::{Image, Message, Part, Request, Role, Tool, ToolChoice, ToolResult};
use serde_json::{Map, Value, json};

use super::PROVIDER;
use crate::body::{add_extra, put};
use crate::ids::{Ids, Rule};
use crate::{EncodeError, image, json};

/// Stands for the result of a tool that has no text: a result needs content, and the provider refuses blank ones.
const EMPTY: &str = "(empty)";

pub(super) fn body(request: &Request) -> Result<Map<String, Value>, EncodeError> {
    let mut body = Map::new();
    body.insert("messages".into(), messages(request)?.into());
    if !request.system.trim().is_empty() {
        body.insert("system".into(), json!([{"text": request.system}]));
    }
    let mut inference = Map::new();
    put(&mut inference, "maxTokens", request.max_tokens);
    put(&mut inference, "temperature", request.temperature);
    put(&mut inference, "topP", request.top_p);
    if !request.stop.is_empty() {
        inference.insert("stopSequences".into(), request.stop.clone().into());
    }
    if !inference.is_empty() {
        body.insert("inferenceConfig".into(), inference.into());
    }
    put(&mut body, "toolConfig", tools(request));
    if let Some(output) = &request.output {
        // The schema is a text here.
        let schema = json!({"name": output.name, "schema": output.schema.to_string()});
        let format = json!({"type": "json_schema", "structure": {"jsonSchema": schema}});
        body.insert("outputConfig".into(), json!({"textFormat": format}));
    }
    if let Some(top_k) = request.top_k {
        body.insert("additionalModelRequestFields".into(), json!({"top_k": top_k}));
    }
    add_extra(&mut body, &request.extra);
    Ok(body)
}

/// Settings that the protocol has no member for. Each family of models has its own members for the effort of reasoning, which go
/// into `additionalModelRequestFields` of `extra`.
pub(super) fn left_out(request: &Request) -> [(&'static str, bool); 2] {
    let has_fields = request.extra.contains_key("additionalModelRequestFields");
    let is_shown = !request.tools.is_empty() && request.tool_choice == ToolChoice::None && has_calls(request);
    [("reasoning_effort", request.reasoning_effort.is_some() && !has_fields), ("tool_choice", is_shown)]
}

fn has_calls(request: &Request) -> bool {
    let mut parts = request.messages.iter().flat_map(|message| &message.parts);
    parts.any(|part| matches!(part, Part::ToolCall(_) | Part::ToolResult(_)))
}

fn tools(request: &Request) -> Option<Value> {
    let choice = match &request.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::Required => Some(json!({"any": {}})),
        ToolChoice::Tool(name) => Some(json!({"tool": {"name": name}})),
        // The protocol cannot forbid calls, so tools that must not be called are not shown. After calls they have to be.
        ToolChoice::None if !has_calls(request) => return None,
        ToolChoice::None => None,
    };
    if request.tools.is_empty() {
        return None;
    }
    let mut config = json!({"tools": request.tools.iter().map(tool).collect::<Vec<_>>()});
    if let Some(choice) = choice {
        config["toolChoice"] = choice;
    }
    Some(config)
}

fn tool(tool: &Tool) -> Value {
    let mut spec = Map::new();
    spec.insert("name".into(), tool.name.clone().into());
    if !tool.description.is_empty() {
        spec.insert("description".into(), tool.description.clone().into());
    }
    spec.insert("inputSchema".into(), json!({"json": json::parameters(&tool.input_schema)}));
    json!({"toolSpec": spec})
}

/// The provider wants the two sides to take turns, also where nothing is left of a message between two others.
fn messages(request: &Request) -> Result<Vec<Value>, EncodeError> {
    let ids = Ids::new(&request.messages, Rule::Word);
    let mut turns: Vec<(Role, Vec<Value>)> = Vec::new();
    for message in &request.messages {
        let mut blocks = content(message, &ids)?;
        match turns.last_mut() {
            _ if blocks.is_empty() => {}
            Some((role, before)) if *role == message.role => before.append(&mut blocks),
            _ => turns.push((message.role, blocks)),
        }
    }
    let name = |role| if role == Role::User { "user" } else { "assistant" };
    Ok(turns.into_iter().map(|(role, content)| json!({"role": name(role), "content": content})).collect())
}

/// What is left to send of a message.
fn content(message: &Message, ids: &Ids) -> Result<Vec<Value>, EncodeError> {
    let mut content = Vec::new();
    for part in &message.parts {
        match part {
            // The provider refuses empty texts, and those of white space alone.
            Part::Text { text } if text.trim().is_empty() => {}
            Part::Text { text } => content.push(json!({"text": text})),
            Part::Image(part) if message.role == Role::User => content.push(image(part)?),
            Part::ToolCall(call) if message.role == Role::Assistant => {
                let input = json::arguments(&call.arguments);
                content.push(json!({"toolUse": {"toolUseId": ids.get(&call.id), "name": call.name, "input": input}}));
            }
            Part::ToolResult(result) if message.role == Role::User => content.push(tool_result(result, ids)),
            Part::Reasoning { text, opaque } if message.role == Role::Assistant => {
                content.extend(reasoning(text, opaque))
            }
            Part::Image(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Reasoning { .. } => {
                return Err(EncodeError::misplaced(message.role));
            }
        }
    }
    Ok(content)
}

fn image(image: &Image) -> Result<Value, EncodeError> {
    let format = match image.mime.as_str() {
        "image/png" => "png",
        "image/jpeg" => "jpeg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        other => {
            return Err(EncodeError::Unsupported { provider: PROVIDER, feature: format!("images of type {other:?}") });
        }
    };
    image::check(image)?;
    Ok(json!({"image": {"format": format, "source": {"bytes": image.data}}}))
}

fn tool_result(result: &ToolResult, ids: &Ids) -> Value {
    // Only an object may go as JSON.
    let content = match serde_json::from_str::<Value>(&result.content) {
        Ok(value @ Value::Object(_)) => json!({"json": value}),
        _ if result.content.trim().is_empty() => json!({"text": EMPTY}),
        _ => json!({"text": result.content}),
    };
    let mut block = json!({"toolUseId": ids.get(&result.call), "content": [content]});
    if result.error {
        block["status"] = "error".into();
    }
    json!({"toolResult": block})
}

/// Reasoning as it came, or nothing if it is another provider's.
fn reasoning(text: &str, opaque: &Value) -> Option<Value> {
    if let Some(redacted) = opaque.get("redactedContent") {
        return Some(json!({"reasoningContent": {"redactedContent": redacted}}));
    }
    let signature = opaque.get("bedrockSignature")?;
    Some(json!({"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}))
}
