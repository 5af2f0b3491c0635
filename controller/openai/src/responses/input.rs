//! The input of a response: a text, or items.

use atlas_model::{Image, Message, Part, Role, ToolCall, ToolResult};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::body::Node;
use crate::chat::{CALL_ID_BYTES_MAX, MESSAGES_MAX, PARTS_MAX, parsed};
use crate::error::bounded;
use crate::{WireError, images, settings};

/// The texts of the system and of developers, and the messages. Items of the model that follow each other are one message.
pub(super) fn read(node: &Node<'_>) -> Result<(Vec<String>, Vec<Message>), WireError> {
    let mut input = Input::default();
    if let Some(text) = node.value.as_str() {
        input.add(Role::User, vec![Part::Text { text: text.to_owned() }]);
        return Ok((input.system, input.messages));
    }
    if !node.value.is_array() {
        return Err(node.wrong_type("a string or a list of items"));
    }
    for item in node.list(MESSAGES_MAX)? {
        input.item(&item)?;
    }
    Ok((input.system, input.messages))
}

#[derive(Default)]
struct Input {
    system: Vec<String>,
    messages: Vec<Message>,
}

impl Input {
    fn add(&mut self, role: Role, mut parts: Vec<Part>) {
        parts.retain(|part| !matches!(part, Part::Text { text } if text.is_empty()));
        match self.messages.last_mut().filter(|last| last.role == role && role == Role::Assistant) {
            Some(last) => last.parts.append(&mut parts),
            None if parts.is_empty() => {}
            None => self.messages.push(Message { role, parts }),
        }
    }

    fn item(&mut self, node: &Node<'_>) -> Result<(), WireError> {
        node.object()?;
        let kind = node.member("type");
        match kind.as_ref().map_or(Ok("message"), |kind| kind.text())? {
            "message" => self.message(node),
            "function_call" => {
                let call = ToolCall {
                    id: node.required("call_id")?.short_text(CALL_ID_BYTES_MAX)?.to_owned(),
                    name: settings::name(&node.required("name")?)?,
                    arguments: parsed(node.required("arguments")?.text()?),
                    opaque: Value::Null,
                };
                self.add(Role::Assistant, vec![Part::ToolCall(call)]);
                Ok(())
            }
            "function_call_output" => {
                let call = node.required("call_id")?.short_text(CALL_ID_BYTES_MAX)?.to_owned();
                let content = output(&node.required("output")?)?;
                let result = ToolResult { call, name: String::new(), content, error: false };
                self.add(Role::User, vec![Part::ToolResult(result)]);
                Ok(())
            }
            "reasoning" => {
                self.add(Role::Assistant, reasoning(node)?);
                Ok(())
            }
            "item_reference" => {
                let why = "send the item itself, or previous_response_id";
                Err(WireError::unsupported(&node.path_of("type"), why))
            }
            other => {
                let text = format!(
                    "items are messages, function_call, function_call_output and reasoning, not {:?}",
                    bounded(other)
                );
                Err(WireError::unsupported(&node.path_of("type"), &text))
            }
        }
    }

    fn message(&mut self, node: &Node<'_>) -> Result<(), WireError> {
        let role = node.required("role")?.word(&["user", "assistant", "system", "developer"])?;
        let parts = content(&node.required("content")?, role)?;
        match role {
            "user" => self.add(Role::User, parts),
            "assistant" => self.add(Role::Assistant, parts),
            _ => {
                let text = |part| if let Part::Text { text } = part { Some(text) } else { None };
                self.system.extend(parts.into_iter().filter_map(text).filter(|text| !text.is_empty()));
            }
        }
        Ok(())
    }
}

/// The parts of a message: a text, or a list. Images are the user's alone.
fn content(node: &Node<'_>, role: &str) -> Result<Vec<Part>, WireError> {
    if let Some(text) = node.value.as_str() {
        return Ok(vec![Part::Text { text: text.to_owned() }]);
    }
    if !node.value.is_array() {
        return Err(node.wrong_type("a string or a list of parts"));
    }
    node.list(PARTS_MAX)?.iter().map(|node| part(node, role == "user")).collect()
}

fn part(node: &Node<'_>, with_images: bool) -> Result<Part, WireError> {
    node.object()?;
    let kind = node.required("type")?;
    match kind.text()? {
        "input_text" | "output_text" | "text" => Ok(Part::Text { text: node.required("text")?.text()?.to_owned() }),
        "refusal" => Ok(Part::Text { text: node.required("refusal")?.text()?.to_owned() }),
        "input_image" if with_images => image(node).map(Part::Image),
        other => {
            let taken = if with_images { "input_text and input_image" } else { "text" };
            let text = format!("parts of this item are of the type {taken}, not {:?}", bounded(other));
            Err(WireError::unsupported(&kind.path, &text))
        }
    }
}

fn image(node: &Node<'_>) -> Result<Image, WireError> {
    if let Some(file) = node.member("file_id") {
        return Err(WireError::unsupported(&file.path, "this server keeps no files; send image_url with the data"));
    }
    images::read(&node.required("image_url")?)
}

/// What a function returned: a text, or a list of texts.
fn output(node: &Node<'_>) -> Result<String, WireError> {
    let text = |part| if let Part::Text { text } = part { Some(text) } else { None };
    Ok(content(node, "tool")?.into_iter().filter_map(text).collect())
}

/// Reasoning that this server wrote is what it was; of another one, the texts are left.
fn reasoning(node: &Node<'_>) -> Result<Vec<Part>, WireError> {
    if let Some(sealed) = node.member("encrypted_content") {
        let bytes = STANDARD.decode(sealed.text()?).unwrap_or_default();
        let parts: Vec<Part> = serde_json::from_slice(&bytes).unwrap_or_default();
        let is_ours = |part: &Part| matches!(part, Part::Reasoning { .. });
        if !parts.is_empty() && parts.iter().all(is_ours) {
            return Ok(parts);
        }
    }
    let mut texts = Vec::new();
    for name in ["summary", "content"] {
        for piece in node.member(name).map(|list| list.list(PARTS_MAX)).transpose()?.unwrap_or_default() {
            texts.push(piece.required("text")?.text()?.to_owned());
        }
    }
    let text = texts.join("\n\n");
    Ok(if text.is_empty() { Vec::new() } else { vec![Part::Reasoning { text, opaque: Value::Null }] })
}
