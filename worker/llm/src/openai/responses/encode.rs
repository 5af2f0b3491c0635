//! The request as HTTP.

use atlas_model::{Message, Part, Request, Role, ToolChoice};
use serde_json::{Map, Value, json};

use super::Responses;
use crate::body::{add_extra, put};
use crate::ids::{Ids, Rule};
use crate::openai::{self, Access, families};
use crate::{EncodeError, Endpoint, Parts, image, json as write, percent};

/// The member of [`Part::Reasoning`]'s opaque value that holds the provider's item.
pub(super) const ITEM: &str = "responses_item";

/// Longest id of a call that OpenAI takes here.
const ID_BYTES_MAX: usize = 64;

pub(super) fn parts(responses: &Responses, endpoint: &Endpoint, request: &Request) -> Result<Parts, EncodeError> {
    let url = match &responses.access {
        Access::Azure { api_version, .. } => {
            endpoint.url(&format!("/openai/responses?api-version={}", percent::encode(api_version, "")))
        }
        _ => endpoint.url("/responses"),
    };
    let mut parts = Parts::post(url, &body(request)?);
    let refused = families::refused(&request.model, request.reasoning_effort.as_deref());
    parts.leave_out(&[
        ("top_k", request.top_k.is_some()),
        ("stop", !request.stop.is_empty()),
        ("temperature", request.temperature.is_some() && refused.sampling),
        ("top_p", request.top_p.is_some() && refused.sampling),
    ]);
    openai::finish(&responses.access, endpoint, request, &mut parts)?;
    Ok(parts)
}

fn body(request: &Request) -> Result<Value, EncodeError> {
    let mut body = Map::new();
    let mut set = |name: &str, value: Option<Value>| put(&mut body, name, value);
    set("model", Some(json!(request.model)));
    set("instructions", (!request.system.is_empty()).then(|| json!(request.system)));
    set("input", Some(input(request)?));
    let refused = families::refused(&request.model, request.reasoning_effort.as_deref());
    set("max_output_tokens", request.max_tokens.map(|limit| json!(limit)));
    set("temperature", request.temperature.filter(|_| !refused.sampling).map(|value| json!(value)));
    set("top_p", request.top_p.filter(|_| !refused.sampling).map(|value| json!(value)));
    if let Some(effort) = &request.reasoning_effort {
        set("reasoning", Some(json!({ "effort": effort })));
        // Models that do not reason refuse this member.
        set("include", Some(json!(["reasoning.encrypted_content"])));
    }
    if !request.tools.is_empty() {
        set("tools", Some(request.tools.iter().map(tool).collect()));
        set("tool_choice", choice(&request.tool_choice));
    }
    set(
        "text",
        request.output.as_ref().map(|output| {
            let strict = openai::is_strict(&output.schema);
            let format =
                json!({ "type": "json_schema", "name": output.name, "schema": output.schema, "strict": strict });
            json!({ "format": format })
        }),
    );
    set("store", Some(json!(false)));
    set("stream", request.stream.then(|| json!(true)));
    add_extra(&mut body, &request.extra);
    Ok(Value::Object(body))
}

fn tool(tool: &atlas_model::Tool) -> Value {
    // The provider's default would change schemas that are not strict.
    let parameters = write::parameters(&tool.input_schema);
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": parameters,
        "strict": false,
    })
}

fn choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Tool(name) => Some(json!({ "type": "function", "name": name })),
    }
}

fn input(request: &Request) -> Result<Value, EncodeError> {
    let mut items = Vec::new();
    let ids = Ids::new(&request.messages, Rule::Short(ID_BYTES_MAX));
    for message in &request.messages {
        let mut content = Vec::new();
        for part in &message.parts {
            match item(message.role, part, &ids)? {
                Item::Content(piece) => content.push(piece),
                Item::Own(item) => {
                    flush(message, &mut content, &mut items);
                    items.push(item);
                }
                Item::Nothing => {}
            }
        }
        flush(message, &mut content, &mut items);
    }
    Ok(Value::Array(items))
}

/// What a part becomes.
enum Item {
    /// A piece of a message.
    Content(Value),
    /// An item of its own.
    Own(Value),
    Nothing,
}

fn item(role: Role, part: &Part, ids: &Ids) -> Result<Item, EncodeError> {
    Ok(match (role, part) {
        (Role::User, Part::Text { text }) => Item::Content(json!({ "type": "input_text", "text": text })),
        (Role::User, Part::Image(image)) => {
            Item::Content(json!({ "type": "input_image", "image_url": image::data_url(image)? }))
        }
        (Role::User, Part::ToolResult(result)) => Item::Own(
            json!({ "type": "function_call_output", "call_id": ids.get(&result.call), "output": result.content }),
        ),
        (Role::Assistant, Part::Text { text }) => Item::Content(json!({ "type": "output_text", "text": text })),
        (Role::Assistant, Part::ToolCall(call)) => Item::Own(json!({
            "type": "function_call",
            "call_id": ids.get(&call.id),
            "name": call.name,
            "arguments": write::arguments(&call.arguments).to_string(),
        })),
        // Reasoning without its encrypted content would be looked up at the provider, which has stored nothing.
        (Role::Assistant, Part::Reasoning { opaque, .. }) => match opaque.get(ITEM) {
            Some(item) if write::text(item, "/encrypted_content").is_some() => Item::Own(item.clone()),
            _ => Item::Nothing,
        },
        (role, _) => return Err(EncodeError::misplaced(role)),
    })
}

fn flush(message: &Message, content: &mut Vec<Value>, items: &mut Vec<Value>) {
    if !content.is_empty() {
        let role = if message.role == Role::User { "user" } else { "assistant" };
        items.push(json!({ "type": "message", "role": role, "content": std::mem::take(content) }));
    }
}
