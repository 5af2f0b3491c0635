//! The body of `generateContent`. Vertex AI takes the same.

use std::collections::BTreeSet;

use atlas_model::{Message, Part, Request, Role, Tool, ToolCall, ToolChoice, ToolResult};
use serde_json::{Map, Value, json};

use crate::body::{add_extra, put};
use crate::{EncodeError, image, json};

pub(crate) fn body(request: &Request) -> Result<Map<String, Value>, EncodeError> {
    let mut body = Map::new();
    let calls = known_calls(&request.messages);
    let contents: Result<Vec<Value>, _> =
        request.messages.iter().filter_map(|message| content(message, &calls).transpose()).collect();
    body.insert("contents".into(), Value::Array(contents?));
    if !request.system.is_empty() {
        body.insert("systemInstruction".into(), json!({"parts": [{"text": request.system}]}));
    }
    if !request.tools.is_empty() {
        let declarations: Vec<Value> = request.tools.iter().map(declaration).collect();
        body.insert("tools".into(), json!([{"functionDeclarations": declarations}]));
        if let Some(config) = choice(&request.tool_choice) {
            body.insert("toolConfig".into(), json!({"functionCallingConfig": config}));
        }
    }
    let config = generation_config(request);
    if !config.is_empty() {
        body.insert("generationConfig".into(), config.into());
    }
    add_extra(&mut body, &request.extra);
    Ok(body)
}

fn generation_config(request: &Request) -> Map<String, Value> {
    let mut config = Map::new();
    put(&mut config, "temperature", request.temperature);
    put(&mut config, "topP", request.top_p);
    put(&mut config, "topK", request.top_k);
    put(&mut config, "maxOutputTokens", request.max_tokens);
    if !request.stop.is_empty() {
        config.insert("stopSequences".into(), request.stop.clone().into());
    }
    if let Some(output) = &request.output {
        config.insert("responseMimeType".into(), "application/json".into());
        config.insert("responseJsonSchema".into(), output.schema.clone());
    }
    // Models that know no levels take a `thinkingBudget` in `extra`, and refuse both together.
    if let Some(effort) = &request.reasoning_effort
        && request.extra.get("generationConfig").is_none_or(|config| config.get("thinkingConfig").is_none())
    {
        config.insert("thinkingConfig".into(), json!({"thinkingLevel": effort, "includeThoughts": true}));
    }
    config
}

fn choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({"mode": "NONE"})),
        ToolChoice::Required => Some(json!({"mode": "ANY"})),
        ToolChoice::Tool(name) => Some(json!({"mode": "ANY", "allowedFunctionNames": [name]})),
    }
}

/// The calls that have an id of the provider. The other ids are made up here and mean nothing to it.
fn known_calls(messages: &[Message]) -> BTreeSet<&str> {
    let parts = messages.iter().flat_map(|message| &message.parts);
    parts
        .filter_map(|part| match part {
            Part::ToolCall(call) if call.opaque.get("id").is_some() => Some(call.id.as_str()),
            _ => None,
        })
        .collect()
}

/// None for a message of which nothing is left to send.
fn content(message: &Message, calls: &BTreeSet<&str>) -> Result<Option<Value>, EncodeError> {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "model",
    };
    let mut parts: Vec<Value> = Vec::new();
    for part in &message.parts {
        match part {
            Part::Text { text } => parts.push(json!({"text": text})),
            Part::Image(image) if message.role == Role::User => {
                image::check(image)?;
                parts.push(json!({"inlineData": {"mimeType": image.mime, "data": image.data}}));
            }
            Part::ToolCall(call) if message.role == Role::Assistant => parts.push(function_call(call)),
            Part::ToolResult(result) if message.role == Role::User => parts.push(function_response(result, calls)),
            Part::Reasoning { text, opaque } if message.role == Role::Assistant => {
                thought(&mut parts, text, opaque);
            }
            Part::Image(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Reasoning { .. } => {
                return Err(EncodeError::misplaced(message.role));
            }
        }
    }
    Ok((!parts.is_empty()).then(|| json!({"role": role, "parts": parts})))
}

/// Reasoning goes back only with its signature. A signature without reasoning belongs to the text before it.
fn thought(parts: &mut Vec<Value>, text: &str, opaque: &Value) {
    let Some(signature) = opaque.get("thoughtSignature") else { return };
    if !text.is_empty() {
        parts.push(json!({"text": text, "thought": true, "thoughtSignature": signature}));
        return;
    }
    match parts.last_mut() {
        Some(last) if last.get("text").is_some() && last.get("thoughtSignature").is_none() => {
            last["thoughtSignature"] = signature.clone();
        }
        _ => parts.push(json!({"text": "", "thoughtSignature": signature})),
    }
}

fn function_call(call: &ToolCall) -> Value {
    let mut function = json!({"name": call.name, "args": json::arguments(&call.arguments)});
    if let Some(id) = call.opaque.get("id") {
        function["id"] = id.clone();
    }
    let mut part = json!({"functionCall": function});
    if let Some(signature) = call.opaque.get("thoughtSignature") {
        part["thoughtSignature"] = signature.clone();
    }
    part
}

/// The provider takes objects alone.
fn function_response(result: &ToolResult, calls: &BTreeSet<&str>) -> Value {
    let value = serde_json::from_str(&result.content).unwrap_or_else(|_| Value::String(result.content.clone()));
    let response = match value {
        Value::Object(_) => value,
        value if result.error => json!({"error": value}),
        value => json!({"result": value}),
    };
    let mut function = json!({"name": result.name, "response": response});
    if calls.contains(result.call.as_str()) {
        function["id"] = result.call.clone().into();
    }
    json!({"functionResponse": function})
}

fn declaration(tool: &Tool) -> Value {
    let mut declaration = Map::new();
    declaration.insert("name".into(), tool.name.clone().into());
    if !tool.description.is_empty() {
        declaration.insert("description".into(), tool.description.clone().into());
    }
    if has_parameters(&tool.input_schema) {
        declaration.insert("parametersJsonSchema".into(), tool.input_schema.clone());
    }
    declaration.into()
}

/// The provider refuses the schema of an object without members.
fn has_parameters(schema: &Value) -> bool {
    let is_object = schema.get("type").is_some_and(|kind| kind == "object");
    let is_empty = |schema: &Value| schema.as_object().is_none_or(Map::is_empty);
    if is_object { schema.get("properties").is_some_and(|members| !is_empty(members)) } else { !is_empty(schema) }
}
