//! The body of `converse`.

use atlas_model::{Image, Message, Part, Request, Role, Tool, ToolChoice, ToolResult};
use serde_json::{Map, Value, json};

use super::PROVIDER;
use crate::body::{add_extra, put};
use crate::{EncodeError, image, json};

pub(super) fn body(request: &Request) -> Result<Map<String, Value>, EncodeError> {
    let mut body = Map::new();
    let messages = request.messages.iter().map(message).filter_map(Result::transpose).collect::<Result<Vec<_>, _>>()?;
    body.insert("messages".into(), messages.into());
    if !request.system.is_empty() {
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

/// None for a message of which nothing is left to send.
fn message(message: &Message) -> Result<Option<Value>, EncodeError> {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let mut content = Vec::new();
    for part in &message.parts {
        match part {
            // The provider refuses empty texts.
            Part::Text { text } if text.is_empty() => {}
            Part::Text { text } => content.push(json!({"text": text})),
            Part::Image(part) if message.role == Role::User => content.push(image(part)?),
            Part::ToolCall(call) if message.role == Role::Assistant => {
                let input = json::arguments(&call.arguments);
                content.push(json!({"toolUse": {"toolUseId": call.id, "name": call.name, "input": input}}));
            }
            Part::ToolResult(result) if message.role == Role::User => content.push(tool_result(result)),
            Part::Reasoning { text, opaque } if message.role == Role::Assistant => {
                content.extend(reasoning(text, opaque))
            }
            Part::Image(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Reasoning { .. } => {
                return Err(EncodeError::misplaced(message.role));
            }
        }
    }
    Ok((!content.is_empty()).then(|| json!({"role": role, "content": content})))
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

fn tool_result(result: &ToolResult) -> Value {
    // Only an object may go as JSON.
    let content = match serde_json::from_str::<Value>(&result.content) {
        Ok(value @ Value::Object(_)) => json!({"json": value}),
        _ => json!({"text": result.content}),
    };
    let mut block = json!({"toolUseId": result.call, "content": [content]});
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
