//! The messages of a request.
//!
//! System and developer messages become the system text, wherever they are. Results of tools follow the calls that they answer.

use std::collections::BTreeMap;

use atlas_model::{Message, Part, Role, ToolCall, ToolResult};
use serde_json::{Value, json};

use super::{EXTRA, OURS, REASONING};
use crate::body::Node;
use crate::error::bounded;
use crate::{WireError, images, settings};

/// Most messages of a request.
pub(crate) const MESSAGES_MAX: usize = 10_000;
/// Most parts of a message.
pub(crate) const PARTS_MAX: usize = 1_000;
/// Most calls of a message.
const CALLS_MAX: usize = 512;
/// Longest id of a call. Some providers put signatures into their ids.
pub(crate) const CALL_ID_BYTES_MAX: usize = 8_192;

/// The system text and the messages.
pub(super) fn read(list: &Node<'_>) -> Result<(String, Vec<Message>), WireError> {
    let nodes = list.list(MESSAGES_MAX)?;
    if nodes.is_empty() {
        return Err(list.wrong("must have at least one message"));
    }
    let mut history = History::default();
    for node in nodes {
        history.add(&node)?;
    }
    history.finish()
}

#[derive(Default)]
struct History {
    system: Vec<String>,
    messages: Vec<Message>,
    /// The calls of the last answer that have no result yet: their names by their ids.
    open: BTreeMap<String, String>,
    /// Where these calls are.
    calls_path: String,
}

impl History {
    fn add(&mut self, node: &Node<'_>) -> Result<(), WireError> {
        node.object()?;
        let role = node.required("role")?.word(&["system", "developer", "user", "assistant", "tool", "function"])?;
        if role == "function" {
            return Err(WireError::unsupported(
                &node.path_of("role"),
                "functions were replaced; send the role \"tool\"",
            ));
        }
        if role == "tool" {
            return self.result(node);
        }
        self.check_answered()?;
        match role {
            "user" => {
                let parts = content(&node.required("content")?, true)?;
                self.messages.push(Message { role: Role::User, parts });
            }
            "assistant" => self.assistant(node)?,
            _ => self.system.extend(texts(&node.required("content")?)?.into_iter().filter(|text| !text.is_empty())),
        }
        Ok(())
    }

    fn assistant(&mut self, node: &Node<'_>) -> Result<(), WireError> {
        for old in ["function_call", "audio"] {
            if node.member(old).is_some() {
                return Err(WireError::unsupported(&node.path_of(old), "messages have text and tool_calls"));
            }
        }
        let mut parts = Vec::new();
        let reasoning = node.member(REASONING).or_else(|| node.member("reasoning"));
        if let Some(text) = reasoning.and_then(|node| node.value.as_str()).filter(|text| !text.is_empty()) {
            // Says to the adapters in which member servers want it back.
            parts.push(Part::Reasoning { text: text.to_owned(), opaque: json!({ "field": REASONING }) });
        }
        if let Some(content) = node.member("content") {
            parts.extend(said(&content)?);
        }
        if let Some(refusal) = node.member("refusal") {
            parts.extend(text_part(refusal.text()?));
        }
        let calls = node.member("tool_calls").map(|calls| calls.list(CALLS_MAX)).transpose()?.unwrap_or_default();
        self.calls_path = node.path_of("tool_calls");
        for call in &calls {
            let call = read_call(call)?;
            if self.open.insert(call.id.clone(), call.name.clone()).is_some() {
                let text = format!("has two calls with the id {:?}", bounded(&call.id));
                return Err(Node { value: node.value, path: self.calls_path.clone() }.wrong(&text));
            }
            parts.push(Part::ToolCall(call));
        }
        if parts.is_empty() && node.member("content").is_none() {
            return Err(node.wrong("must have content or tool_calls"));
        }
        // An empty answer says nothing, and providers refuse it.
        if !parts.is_empty() {
            self.messages.push(Message { role: Role::Assistant, parts });
        }
        Ok(())
    }

    fn result(&mut self, node: &Node<'_>) -> Result<(), WireError> {
        let id_node = node.required("tool_call_id")?;
        let id = id_node.text()?;
        let Some(name) = self.open.remove(id) else {
            let text = "answers no call: a tool message follows the assistant message whose tool_calls have its id";
            return Err(id_node.wrong(text));
        };
        let content = texts(&node.required("content")?)?.concat();
        let result = Part::ToolResult(ToolResult { call: id.to_owned(), name, content, error: false });
        let is_results = |message: &&mut Message| {
            message.role == Role::User && message.parts.iter().all(|part| matches!(part, Part::ToolResult(_)))
        };
        match self.messages.last_mut().filter(is_results) {
            Some(message) => message.parts.push(result),
            None => self.messages.push(Message { role: Role::User, parts: vec![result] }),
        }
        Ok(())
    }

    /// Refuses to go on while a call has no result.
    fn check_answered(&self) -> Result<(), WireError> {
        if self.open.is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = self.open.keys().take(5).map(|id| format!("{:?}", bounded(id))).collect();
        let text = format!(
            "{} must be followed by a tool message for each call; there is none for {}",
            self.calls_path,
            ids.join(", ")
        );
        Err(WireError::invalid(text).at(self.calls_path.as_str()))
    }

    fn finish(mut self) -> Result<(String, Vec<Message>), WireError> {
        self.check_answered()?;
        let system = self.system.join("\n\n");
        // Most providers want a message besides the system text.
        if self.messages.is_empty() {
            if system.is_empty() {
                return Err(WireError::invalid("all messages are empty").at("messages"));
            }
            self.messages.push(Message::user(system));
            return Ok((String::new(), self.messages));
        }
        Ok((system, self.messages))
    }
}

fn read_call(node: &Node<'_>) -> Result<ToolCall, WireError> {
    node.object()?;
    if let Some(kind) = node.member("type").filter(|kind| kind.value != "function") {
        return Err(WireError::unsupported(&kind.path, "calls are of the type \"function\""));
    }
    let function = node.required("function")?;
    let arguments = function.required("arguments")?.text()?;
    let opaque = node.value.get(EXTRA).and_then(|extra| extra.get(OURS)).cloned();
    Ok(ToolCall {
        id: node.required("id")?.short_text(CALL_ID_BYTES_MAX)?.to_owned(),
        name: settings::name(&function.required("name")?)?,
        arguments: parsed(arguments),
        opaque: opaque.unwrap_or_default(),
    })
}

/// The arguments of a call. Text that is no JSON stays text; none at all are no arguments.
pub(crate) fn parsed(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// The parts of a message of the user: a text, or texts and images.
fn content(node: &Node<'_>, with_images: bool) -> Result<Vec<Part>, WireError> {
    if let Some(text) = node.value.as_str() {
        return Ok(vec![Part::Text { text: text.to_owned() }]);
    }
    if !node.value.is_array() {
        return Err(node.wrong_type("a string or a list of parts"));
    }
    let nodes = node.list(PARTS_MAX)?;
    if nodes.is_empty() {
        return Err(node.wrong("must have at least one part"));
    }
    nodes.iter().map(|node| part(node, with_images)).collect()
}

fn part(node: &Node<'_>, with_images: bool) -> Result<Part, WireError> {
    node.object()?;
    let kind = node.required("type")?;
    match kind.text()? {
        "text" => Ok(Part::Text { text: node.required("text")?.text()?.to_owned() }),
        "image_url" if with_images => {
            let image = node.required("image_url")?;
            image.object()?;
            images::read(&image.required("url")?).map(Part::Image)
        }
        other => {
            let taken = if with_images { "text and image_url" } else { "text" };
            let text = format!("parts of this message are of the type {taken}, not {:?}", bounded(other));
            Err(WireError::unsupported(&kind.path, &text))
        }
    }
}

/// The texts of a message that has no others.
fn texts(node: &Node<'_>) -> Result<Vec<String>, WireError> {
    let text = |part| if let Part::Text { text } = part { Some(text) } else { None };
    Ok(content(node, false)?.into_iter().filter_map(text).collect())
}

/// What the model said: a text, or parts that are texts and refusals. Empty ones say nothing.
fn said(node: &Node<'_>) -> Result<Vec<Part>, WireError> {
    if let Some(text) = node.value.as_str() {
        return Ok(text_part(text).into_iter().collect());
    }
    if !node.value.is_array() {
        return Err(node.wrong_type("a string or a list of parts"));
    }
    let mut parts = Vec::new();
    for node in node.list(PARTS_MAX)? {
        match node.value["type"].as_str() {
            Some("refusal") => parts.extend(text_part(node.required("refusal")?.text()?)),
            _ => parts.push(part(&node, false)?),
        }
    }
    parts.retain(|part| !matches!(part, Part::Text { text } if text.is_empty()));
    Ok(parts)
}

fn text_part(text: &str) -> Option<Part> {
    (!text.is_empty()).then(|| Part::Text { text: text.to_owned() })
}
