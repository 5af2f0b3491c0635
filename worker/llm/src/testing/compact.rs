//! Requests and events in few lines, and streams in pieces of one size.

use atlas_model::{CallError, Delta, Message, Part, Request, Role, ToolCall, ToolResult};
use serde_json::{Value, json};

use super::weather;
use crate::{Decoder, Event, Parts};

/// A request as text. Values of sensitive headers are not shown.
pub(crate) fn request_text(parts: &Parts) -> String {
    let mut lines = vec![format!("{} {}", parts.method, parts.url)];
    lines.extend(parts.headers.iter().map(|(name, value)| format!("{name}: {value:?}")));
    let body: Value = serde_json::from_slice(&parts.body).unwrap_or(Value::Null);
    lines.extend(members(&body));
    if !parts.dropped.is_empty() {
        lines.push(format!("dropped: {:?}", parts.dropped));
    }
    lines.join("\n")
}

/// Decodes `bytes` in pieces of `size`, up to the first error.
pub(crate) fn decode(mut decoder: Box<dyn Decoder>, bytes: &[u8], size: usize) -> (Vec<Event>, Option<CallError>) {
    let mut events = Vec::new();
    for piece in bytes.chunks(size.max(1)) {
        if let Err(error) = decoder.push(piece, &mut events) {
            return (events, Some(error));
        }
    }
    let error = decoder.end(&mut events).err();
    (events, error)
}

/// Events as text: one line for each piece, and the answer as JSON.
pub(crate) fn events_text(events: &[Event], error: Option<&CallError>) -> String {
    let mut lines: Vec<String> = events.iter().map(event_text).collect();
    lines.extend(error.map(|error| format!("error {}: {}", error.kind.name(), error.message)));
    lines.join("\n")
}

fn event_text(event: &Event) -> String {
    match event {
        Event::Delta(Delta::Text(text)) => format!("text {text:?}"),
        Event::Delta(Delta::Reasoning(text)) => format!("reasoning {text:?}"),
        Event::Delta(Delta::Call { index, id, name }) => format!("call {index} {id} {name}"),
        Event::Delta(Delta::Arguments { index, text }) => format!("arguments {index} {text:?}"),
        Event::Answer(answer) => members(&serde_json::to_value(answer).expect("JSON")).join("\n"),
    }
}

/// One line for each member, and for each element of a list.
fn members(object: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        match value.as_array() {
            Some(list) => {
                lines.push(format!("{name}:"));
                lines.extend(list.iter().map(|element| format!("  {element}")));
            }
            None => lines.push(format!("{name}: {value}")),
        }
    }
    lines
}

/// Server-sent events with these data.
pub(crate) fn stream(data: &[Value]) -> String {
    data.iter().map(|value| format!("data: {value}\n\n")).collect()
}

/// A request with a system text, a round of tools with reasoning, and a question.
pub(crate) fn conversation() -> Request {
    let call = |id: &str, arguments: Value| {
        Part::ToolCall(ToolCall { id: id.to_owned(), name: "weather".to_owned(), arguments, opaque: Value::Null })
    };
    let result = |id: &str, content: &str| {
        let (call, content) = (id.to_owned(), content.to_owned());
        Part::ToolResult(ToolResult { call, name: "weather".to_owned(), content, error: false })
    };
    let text = |text: &str| Part::Text { text: text.to_owned() };
    Request {
        model: "m-1".to_owned(),
        system: "Be brief.".to_owned(),
        messages: vec![
            Message::user("Weather?"),
            Message {
                role: Role::Assistant,
                parts: vec![text("Let me see."), call("a", json!({"city": "Bern"})), call("b", json!("{\"ci"))],
            },
            Message { role: Role::User, parts: vec![result("a", "sunny"), result("b", "{\"error\":\"no JSON\"}")] },
        ]
        .into(),
        tools: vec![weather()],
        ..Request::default()
    }
}
