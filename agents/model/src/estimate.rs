//! Estimates of tokens from texts, for limits that are checked before a request is sent.

use crate::{Message, Part, Request};

/// Tokens that each message costs beside its text.
const MESSAGE: u64 = 5;
/// Tokens that each request costs beside its messages.
const REQUEST: u64 = 2;

/// The tokens of a text, about: four ASCII characters are one token, and so are two others.
///
/// ```
/// assert_eq!(atlas_model::estimate::text("five!"), 2);
/// assert_eq!(atlas_model::estimate::text("日本語"), 2);
/// ```
pub fn text(text: &str) -> u64 {
    let weight: u64 = text.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum();
    weight.div_ceil(4)
}

/// The tokens of a request, about: its system text, messages, tools and output schema. Images count nothing.
pub fn request(request: &Request) -> u64 {
    let system = if request.system.is_empty() { 0 } else { MESSAGE + text(&request.system) };
    let messages: u64 = request.messages.iter().map(message).sum();
    let json = |value: &serde_json::Value| text(&value.to_string());
    let tool = |tool: &crate::Tool| text(&tool.name) + text(&tool.description) + json(&tool.input_schema);
    let tools: u64 = request.tools.iter().map(tool).sum();
    let output = request.output.as_ref().map_or(0, |output| json(&output.schema));
    REQUEST + system + messages + tools + output
}

fn message(message: &Message) -> u64 {
    MESSAGE + message.parts.iter().map(part).sum::<u64>()
}

fn part(part: &Part) -> u64 {
    match part {
        Part::Text { text: content } | Part::Reasoning { text: content, .. } => text(content),
        Part::ToolCall(call) => text(&call.name) + text(&call.arguments.to_string()),
        Part::ToolResult(result) => text(&result.content),
        Part::Image(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Image, Tool};

    #[test]
    fn texts() {
        for (content, tokens) in [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("éé", 1), ("aéé", 2), ("🙂", 1)]
        {
            assert_eq!(text(content), tokens, "{content}");
        }
    }

    #[test]
    fn requests() {
        let mut asked = Request { messages: vec![Message::user("abcdefgh")].into(), ..Request::default() };
        assert_eq!(request(&asked), 2 + 5 + 2);
        asked.system = "abcd".to_owned();
        let image = Image { mime: "image/png".to_owned(), data: "x".repeat(1000) };
        asked.messages[0].parts.push(Part::Image(image));
        assert_eq!(request(&asked), 2 + (5 + 1) + (5 + 2));
        let input_schema = json!({"a": 1});
        asked.tools = vec![Tool { name: "abcd".to_owned(), description: String::new(), input_schema }];
        assert_eq!(request(&asked), 15 + 1 + 2);
    }
}
