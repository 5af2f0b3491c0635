//! The messages of a request as items, for `GET /v1/responses/ID/input_items`.

use atlas_model::{Message, Part, Role};
use serde_json::{Value, json};

use crate::pieces;

/// The items of messages, in their order. `id` is that of the response: ids of items are made from it.
pub fn input_items(messages: &[Message], id: &str) -> Vec<Value> {
    let mut items = Vec::new();
    for message in messages {
        let mut content = Vec::new();
        for part in &message.parts {
            match piece(message.role, part) {
                Piece::Content(piece) => content.push(piece),
                Piece::Item(kind, item) => {
                    flush(message.role, &mut content, &mut items, id);
                    push(kind, item, &mut items, id);
                }
            }
        }
        flush(message.role, &mut content, &mut items, id);
    }
    items
}

/// The answer with a page of items, in their order. `has_more` says whether others follow.
pub fn page(items: Vec<Value>, has_more: bool) -> Value {
    let id = |item: Option<&Value>| item.map_or(Value::Null, |item| item["id"].clone());
    let (first, last) = (id(items.first()), id(items.last()));
    let data = Value::Array(items);
    let mut page = json!({ "object": "list", "data": [], "first_id": first, "last_id": last, "has_more": has_more });
    page["data"] = data;
    page
}

/// What a part becomes.
enum Piece {
    /// A part of a message.
    Content(Value),
    /// An item of its own, with the beginning of its id.
    Item(&'static str, Value),
}

fn piece(role: Role, part: &Part) -> Piece {
    match part {
        Part::Text { text } if role == Role::User => Piece::Content(json!({ "type": "input_text", "text": text })),
        Part::Text { text } => {
            Piece::Content(json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] }))
        }
        Part::Image(image) => {
            let url = format!("data:{};base64,{}", image.mime, image.data);
            Piece::Content(json!({ "type": "input_image", "image_url": url, "detail": "auto" }))
        }
        Part::ToolCall(call) => {
            let arguments = pieces::arguments(&call.arguments);
            let item = json!({
                "type": "function_call", "status": "completed", "call_id": call.id, "name": call.name, "arguments": arguments,
            });
            Piece::Item("fc", item)
        }
        Part::ToolResult(result) => {
            let item = json!({
                "type": "function_call_output", "status": "completed", "call_id": result.call, "output": result.content,
            });
            Piece::Item("fco", item)
        }
        Part::Reasoning { text, .. } => {
            Piece::Item("rs", json!({ "type": "reasoning", "summary": [{ "type": "summary_text", "text": text }] }))
        }
    }
}

fn flush(role: Role, content: &mut Vec<Value>, items: &mut Vec<Value>, id: &str) {
    if !content.is_empty() {
        let role = if role == Role::User { "user" } else { "assistant" };
        let content = std::mem::take(content);
        let item = json!({ "type": "message", "status": "completed", "role": role, "content": content });
        push("msg", item, items, id);
    }
}

fn push(kind: &str, mut item: Value, items: &mut Vec<Value>, id: &str) {
    let stem = id.strip_prefix("resp_").unwrap_or(id);
    item["id"] = format!("{kind}_{stem}_in{}", items.len()).into();
    items.push(item);
}
