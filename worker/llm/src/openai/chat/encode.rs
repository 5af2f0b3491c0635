//! The request as HTTP.

use atlas_model::{Message, Part, Request, Role, ToolCall, ToolChoice};
use serde_json::{Map, Value, json};

use super::Chat;
use crate::body::{add_extra, put};
use crate::ids::{Ids, Rule};
use crate::openai::{self, Access, families};
use crate::{EncodeError, Endpoint, Parts, image, json as write, percent};

/// The member of [`Part::Reasoning`]'s opaque value that names the member of the server's message.
pub(super) const FIELD: &str = "field";
/// The member of a call in which Gemini signs it, behind its address that is compatible with OpenAI's.
pub(super) const EXTRA: &str = "extra_content";
/// The member of a call's opaque value that names the model that was asked.
pub(super) const MODEL: &str = "model";
/// Longest id of a call that OpenAI takes.
const ID_BYTES_MAX: usize = 40;
/// The member that holds OpenRouter's list of reasoning details.
pub(super) const DETAILS: &str = "reasoning_details";

pub(super) fn parts(chat: &Chat, endpoint: &Endpoint, request: &Request) -> Result<Parts, EncodeError> {
    let url = match &chat.access {
        Access::Azure { api_version, .. } => endpoint.url(&format!(
            "/openai/deployments/{}/chat/completions?api-version={}",
            percent::encode(&request.model, ""),
            percent::encode(api_version, "")
        )),
        _ => endpoint.url("/chat/completions"),
    };
    let mut parts = Parts::post(url, &body(chat, request)?);
    let refused = families::refused(&request.model, request.reasoning_effort.as_deref());
    parts.leave_out(&[
        ("top_k", request.top_k.is_some() && !chat.dialect.top_k),
        ("temperature", request.temperature.is_some() && refused.sampling),
        ("top_p", request.top_p.is_some() && refused.sampling),
        ("stop", !request.stop.is_empty() && refused.stop),
    ]);
    openai::finish(&chat.access, endpoint, request, &mut parts)?;
    Ok(parts)
}

fn body(chat: &Chat, request: &Request) -> Result<Value, EncodeError> {
    let mut body = Map::new();
    let mut set = |name: &str, value: Option<Value>| put(&mut body, name, value);
    set("model", Some(json!(request.model)));
    set("messages", Some(messages(chat, request)?));
    let reasons = families::reasoning(&request.model).is_some();
    let limit = if reasons || chat.dialect.max_completion_tokens { "max_completion_tokens" } else { "max_tokens" };
    let refused = families::refused(&request.model, request.reasoning_effort.as_deref());
    set(limit, request.max_tokens.map(|limit| json!(limit)));
    set("temperature", request.temperature.filter(|_| !refused.sampling).map(|value| json!(value)));
    set("top_p", request.top_p.filter(|_| !refused.sampling).map(|value| json!(value)));
    set("top_k", request.top_k.filter(|_| chat.dialect.top_k).map(|value| json!(value)));
    set("stop", (!request.stop.is_empty() && !refused.stop).then(|| json!(request.stop)));
    set("reasoning_effort", request.reasoning_effort.as_ref().map(|effort| json!(effort)));
    if !request.tools.is_empty() {
        set("tools", Some(request.tools.iter().map(tool).collect()));
        set("tool_choice", choice(&request.tool_choice));
    }
    set(
        "response_format",
        request.output.as_ref().map(|output| {
            let mut schema = json!({ "name": output.name, "schema": output.schema });
            if openai::is_strict(&output.schema) {
                schema["strict"] = json!(true);
            }
            json!({ "type": "json_schema", "json_schema": schema })
        }),
    );
    if request.stream {
        set("stream", Some(json!(true)));
        set("stream_options", chat.dialect.stream_options.then(|| json!({ "include_usage": true })));
    }
    add_extra(&mut body, &request.extra);
    Ok(Value::Object(body))
}

fn tool(tool: &atlas_model::Tool) -> Value {
    let parameters = write::parameters(&tool.input_schema);
    json!({
        "type": "function",
        "function": { "name": tool.name, "description": tool.description, "parameters": parameters },
    })
}

fn choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Tool(name) => Some(json!({ "type": "function", "function": { "name": name } })),
    }
}

fn messages(chat: &Chat, request: &Request) -> Result<Value, EncodeError> {
    let is_mistral = chat.dialect.nine_letter_ids || families::is_mistral(&request.model);
    let ids = Ids::new(&request.messages, if is_mistral { Rule::Nine } else { Rule::Short(ID_BYTES_MAX) });
    let mut list = Vec::new();
    if !request.system.is_empty() {
        list.push(json!({ "role": "system", "content": request.system }));
    }
    // Reasoning goes back while the turn goes on: behind the last message that is more than results of tools.
    let asks = |message: &Message| {
        message.role == Role::User && message.parts.iter().any(|part| !matches!(part, Part::ToolResult(_)))
    };
    let turn = request.messages.iter().rposition(asks).unwrap_or(0);
    for (at, message) in request.messages.iter().enumerate() {
        match message.role {
            Role::User => user(message, &ids, is_mistral, &mut list)?,
            Role::Assistant => list.push(assistant(message, at > turn, &ids, &request.model)?),
        }
    }
    Ok(Value::Array(list))
}

fn user(message: &Message, ids: &Ids, is_mistral: bool, list: &mut Vec<Value>) -> Result<(), EncodeError> {
    let mut content = Vec::new();
    for part in &message.parts {
        match part {
            Part::Text { text } => content.push(json!({ "type": "text", "text": text })),
            Part::Image(image) => {
                content.push(json!({ "type": "image_url", "image_url": { "url": image::data_url(image)? } }));
            }
            Part::ToolResult(result) => {
                list.push(json!({ "role": "tool", "tool_call_id": ids.get(&result.call), "content": result.content }));
            }
            Part::ToolCall(_) | Part::Reasoning { .. } => return Err(EncodeError::misplaced(Role::User)),
        }
    }
    // Mistral refuses a user behind results of tools, so what the user says becomes the end of the last result.
    if let Some(result) = list.last_mut().filter(|last| is_mistral && last["role"] == "tool")
        && content.iter().all(|part| part["type"] == "text")
    {
        let mut told = result["content"].as_str().unwrap_or_default().to_owned();
        for text in content.iter().filter_map(|part| part["text"].as_str()) {
            told.push_str("\n\n");
            told.push_str(text);
        }
        result["content"] = told.into();
        return Ok(());
    }
    if let [Part::Text { text }] = message.parts.as_slice() {
        // Plain text is what every server takes.
        list.push(json!({ "role": "user", "content": text }));
    } else if !content.is_empty() {
        list.push(json!({ "role": "user", "content": content }));
    }
    Ok(())
}

fn assistant(message: &Message, in_turn: bool, ids: &Ids, model: &str) -> Result<Value, EncodeError> {
    let mut calls = Vec::new();
    let mut back = Map::new();
    for part in &message.parts {
        match part {
            Part::Text { .. } => {}
            Part::ToolCall(tool_call) => calls.push(call(tool_call, ids, model)),
            Part::Reasoning { text, opaque } if in_turn => reasoning(text, opaque, &mut back),
            Part::Reasoning { .. } => {}
            Part::Image(_) | Part::ToolResult(_) => return Err(EncodeError::misplaced(Role::Assistant)),
        }
    }
    let text = message.text();
    let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { json!(text) };
    let mut out = json!({ "role": "assistant", "content": content });
    if !calls.is_empty() {
        out["tool_calls"] = Value::Array(calls);
    }
    for (name, value) in back {
        out[name] = value;
    }
    Ok(out)
}

fn call(call: &ToolCall, ids: &Ids, model: &str) -> Value {
    let arguments = write::arguments(&call.arguments).to_string();
    let function = json!({ "name": call.name, "arguments": arguments });
    let mut out = json!({ "id": ids.get(&call.id), "type": "function", "function": function });
    if let Some(extra) = call.opaque.get(EXTRA).filter(|_| is_kin(&call.opaque, model)) {
        out[EXTRA] = extra.clone();
    }
    out
}

/// Whether what a call carries is for this model: the one that made the call, or another one of Gemini.
fn is_kin(opaque: &Value, model: &str) -> bool {
    let maker = write::text(opaque, &format!("/{MODEL}")).unwrap_or_default();
    let is_gemini = |name: &str| name.to_ascii_lowercase().contains("gemini");
    maker == model || is_gemini(maker) && is_gemini(model)
}

/// Reasoning goes back in the member that it came in, so servers that never sent the member do not get it.
fn reasoning(text: &str, opaque: &Value, back: &mut Map<String, Value>) {
    if let Some(details) = opaque.get(DETAILS) {
        back.insert(DETAILS.to_owned(), details.clone());
    }
    if write::text(opaque, &format!("/{FIELD}")) == Some("reasoning_content") && !text.is_empty() {
        back.insert("reasoning_content".to_owned(), json!(text));
    }
}
