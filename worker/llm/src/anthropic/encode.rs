//! The body of a request to the messages protocol. Vertex AI takes the same body without the model.

use atlas_model::{Image, Message, OutputSchema, Part, Request, Role, Tool, ToolChoice, ToolResult};
use serde_json::{Map, Value, json};

use crate::body::{add_extra, put};
use crate::ids::{Ids, Rule};
use crate::{EncodeError, image, json};

/// The protocol requires a limit; this one is sent where the request has none.
const MAX_TOKENS_DEFAULT: u32 = 4096;

const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// All members of the body but `model` and `stream`.
///
/// The members of a request without options are `max_tokens` and `messages`, and `system` and `tools` where they are not empty.
pub(crate) fn body(request: &Request, provider: &'static str) -> Result<Map<String, Value>, EncodeError> {
    let mut body = Map::new();
    body.insert("max_tokens".into(), request.max_tokens.unwrap_or(MAX_TOKENS_DEFAULT).into());
    let ids = Ids::new(&request.messages, Rule::Word);
    let messages = request.messages.iter().map(|message| encode(message, provider, &ids));
    let messages: Result<Vec<Value>, _> = messages.filter_map(Result::transpose).collect();
    body.insert("messages".into(), Value::Array(messages?));
    if !request.system.trim().is_empty() {
        body.insert("system".into(), request.system.clone().into());
    }
    if !request.tools.is_empty() {
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
        let choice = match &request.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some(json!({"type": "none"})),
            ToolChoice::Required => Some(json!({"type": "any"})),
            ToolChoice::Tool(name) => Some(json!({"type": "tool", "name": name})),
        };
        put(&mut body, "tool_choice", choice);
    }
    put(&mut body, "temperature", request.temperature);
    put(&mut body, "top_p", request.top_p);
    put(&mut body, "top_k", request.top_k);
    if !request.stop.is_empty() {
        body.insert("stop_sequences".into(), request.stop.clone().into());
    }
    options(&mut body, request);
    add_extra(&mut body, &request.extra);
    Ok(body)
}

/// The schema of the answer and the effort of reasoning.
///
/// Models that know no effort take `thinking` with a budget of tokens in `extra`, which then stands for both members.
fn options(body: &mut Map<String, Value>, request: &Request) {
    let mut config = Map::new();
    if let Some(OutputSchema { schema, .. }) = &request.output {
        config.insert("format".into(), json!({"type": "json_schema", "schema": schema}));
    }
    if let Some(effort) = &request.reasoning_effort
        && !request.extra.contains_key("thinking")
    {
        config.insert("effort".into(), effort.clone().into());
        body.insert("thinking".into(), json!({"type": "adaptive"}));
    }
    if !config.is_empty() {
        body.insert("output_config".into(), config.into());
    }
}

/// None for a message of which nothing is left to send.
fn encode(message: &Message, provider: &'static str, ids: &Ids) -> Result<Option<Value>, EncodeError> {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    if let [Part::Text { text }] = message.parts.as_slice() {
        return Ok((!text.trim().is_empty()).then(|| json!({"role": role, "content": text})));
    }
    let mut results = Vec::new();
    let mut others = Vec::new();
    for part in &message.parts {
        match part {
            // The provider refuses empty texts, and those of white space alone.
            Part::Text { text } if text.trim().is_empty() => {}
            Part::Text { text } => others.push(json!({"type": "text", "text": text})),
            Part::Image(image) if message.role == Role::User => others.push(encode_image(image, provider)?),
            Part::ToolCall(call) if message.role == Role::Assistant => {
                let input = json::arguments(&call.arguments);
                others.push(json!({"type": "tool_use", "id": ids.get(&call.id), "name": call.name, "input": input}));
            }
            Part::ToolResult(result) if message.role == Role::User => results.push(tool_result(result, ids)),
            Part::Reasoning { text, opaque } if message.role == Role::Assistant => {
                others.extend(reasoning(text, opaque))
            }
            Part::Image(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Reasoning { .. } => {
                return Err(EncodeError::misplaced(message.role));
            }
        }
    }
    // Results come before everything else in their message, or the provider refuses it.
    results.append(&mut others);
    Ok((!results.is_empty()).then(|| json!({"role": role, "content": results})))
}

fn encode_image(image: &Image, provider: &'static str) -> Result<Value, EncodeError> {
    if !IMAGES.contains(&image.mime.as_str()) {
        return Err(EncodeError::Unsupported { provider, feature: format!("images of type {:?}", image.mime) });
    }
    image::check(image)?;
    Ok(json!({"type": "image", "source": {"type": "base64", "media_type": image.mime, "data": image.data}}))
}

fn tool_result(result: &ToolResult, ids: &Ids) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": ids.get(&result.call)});
    if !result.content.trim().is_empty() {
        block["content"] = result.content.clone().into();
    }
    // Atlas for Python sends no mark, but the error in the content. The mark is for contents that do not say it themselves.
    if result.error && !says_error(&result.content) {
        block["is_error"] = true.into();
    }
    block
}

fn says_error(content: &str) -> bool {
    json::parse(content.as_bytes()).is_ok_and(|value| value.get("error").is_some())
}

/// The block as it came. Reasoning without its block is another provider's, and this one would refuse it.
fn reasoning(text: &str, opaque: &Value) -> Option<Value> {
    let mut block = opaque.as_object()?.clone();
    match block.get("type").and_then(Value::as_str)? {
        "thinking" => drop(block.insert("thinking".into(), text.into())),
        "redacted_thinking" => {}
        _ => return None,
    }
    Some(block.into())
}

fn tool(tool: &Tool) -> Value {
    let mut encoded = Map::new();
    encoded.insert("name".into(), tool.name.clone().into());
    if !tool.description.is_empty() {
        encoded.insert("description".into(), tool.description.clone().into());
    }
    encoded.insert("input_schema".into(), schema(&tool.input_schema));
    encoded.into()
}

/// The provider wants the schema of an object, also for a tool without parameters.
fn schema(schema: &Value) -> Value {
    let Some(members) = schema.as_object().filter(|members| !members.is_empty()) else {
        return json!({"type": "object", "properties": {}});
    };
    let mut members = members.clone();
    if !members.contains_key("type") {
        members.insert("type".into(), "object".into());
    }
    members.into()
}
