//! What a call came to.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value, json};

use crate::bounds::RESULT_BYTES_MAX;
use crate::error::{McpError, McpErrorKind};

/// The result of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    /// The tool says that it failed.
    pub is_error: bool,
    /// The result as the protocol has it: `content`, `structuredContent` and `isError`. Data of images and sounds is left out.
    pub raw: Value,
}

impl CallResult {
    pub(crate) fn of(server: &str, result: CallToolResult) -> Result<Self, McpError> {
        let is_error = result.is_error == Some(true);
        let content: Vec<Value> = result.content.into_iter().map(block).collect();
        let mut raw = json!({ "content": content, "isError": is_error });
        if let Some(structured) = result.structured_content {
            raw["structuredContent"] = structured;
        }
        let bytes = raw.to_string().len();
        if bytes > RESULT_BYTES_MAX {
            let text = format!(
                "the result of the MCP server {server} has {bytes} bytes, more than {RESULT_BYTES_MAX}; ask for less"
            );
            return Err(McpError::new(McpErrorKind::Protocol, text));
        }
        Ok(Self { is_error, raw })
    }

    /// The text blocks, one after the other.
    pub fn text(&self) -> String {
        let blocks = self.blocks();
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        texts.join("\n")
    }

    /// What a tool that failed says: its texts, and its structured result unless a text says the same.
    pub fn complaint(&self) -> String {
        let text = self.text();
        let text = match self.structured().filter(|structured| !self.is_said(structured)) {
            Some(structured) if text.is_empty() => structured.to_string(),
            Some(structured) => format!("{text}\n{structured}"),
            None => text,
        };
        if text.trim().is_empty() { "the tool failed and does not say why".to_owned() } else { text }
    }

    /// Everything that a model should read: the structured result and the blocks beside it, unless they say the same.
    pub fn for_model(&self) -> Value {
        match self.structured() {
            Some(structured) if !self.is_said(structured) && !self.blocks().is_empty() => {
                json!({ "structuredContent": structured, "content": self.blocks() })
            }
            _ => self.value(),
        }
    }

    fn structured(&self) -> Option<&Value> {
        self.raw.get("structuredContent").filter(|value| !value.is_null())
    }

    fn blocks(&self) -> &[Value] {
        self.raw["content"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether the blocks say what the structured result says: as its JSON, or as the only value in it. Servers add such a text for
    /// clients without structured results.
    fn is_said(&self, structured: &Value) -> bool {
        let texts: Option<Vec<&str>> = self.blocks().iter().map(|block| block["text"].as_str()).collect();
        let Some(texts) = texts else { return false };
        let only =
            structured.as_object().filter(|members| members.len() == 1).and_then(|members| members.values().next());
        [Some(structured), only].into_iter().flatten().any(|value| match (value, texts.as_slice()) {
            (Value::Array(items), texts) if texts.len() != 1 => {
                items.len() == texts.len() && items.iter().zip(texts).all(|(item, text)| says(text, item))
            }
            (value, [text]) => says(text, value),
            _ => false,
        })
    }

    /// The value as an output: the structured result if there is one, the text if there is only text, otherwise all blocks.
    pub fn value(&self) -> Value {
        if let Some(structured) = self.structured() {
            return structured.clone();
        }
        let blocks = self.blocks();
        if blocks.iter().all(|block| block["type"] == "text") {
            return Value::String(self.text());
        }
        json!({ "content": blocks })
    }
}

/// Whether a text says a value: as it is, or as JSON.
fn says(text: &str, value: &Value) -> bool {
    if value.as_str() == Some(text) {
        return true;
    }
    serde_json::from_str::<Value>(text).is_ok_and(|said| match (said.as_f64(), value.as_f64()) {
        (Some(said), Some(value)) => said == value,
        _ => said == *value,
    })
}

/// A block without the data of images and sounds, which no model can read in a result.
fn block(block: ContentBlock) -> Value {
    let left_out = |kind: &str, mime: &str, data: &str| json!({ "type": kind, "mimeType": mime, "bytes": data.len() / 4 * 3, "data": "left out" });
    match block {
        ContentBlock::Text(text) => json!({ "type": "text", "text": text.text }),
        ContentBlock::Image(image) => left_out("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => left_out("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                json!({ "type": "resource", "uri": uri, "text": text })
            }
            ResourceContents::BlobResourceContents { uri, blob, mime_type, .. } => {
                let mut shown = left_out("resource", mime_type.as_deref().unwrap_or_default(), &blob);
                shown["uri"] = uri.into();
                shown
            }
            _ => json!({ "type": "resource" }),
        },
        ContentBlock::ResourceLink(link) => serde_json::to_value(&link).unwrap_or_default(),
        _ => json!({ "type": "unknown" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(content: &Value, structured: &Value) -> CallResult {
        let result = json!({"content": content, "structuredContent": structured});
        CallResult::of("s", serde_json::from_value(result).expect("a result")).expect("small")
    }

    fn text(text: &str) -> Value {
        json!([{"type": "text", "text": text}])
    }

    #[test]
    fn a_text_that_says_the_same_is_not_repeated() {
        let structured = json!({"result": 3.0});
        for content in [text("{\"result\": 3.0}"), text("3"), json!([])] {
            assert_eq!(called(&content, &structured).for_model(), structured);
        }
        let list = json!({"result": ["a", {"b": 1}]});
        let texts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "{\"b\":1}"}]);
        assert_eq!(called(&texts, &list).for_model(), list);
    }

    #[test]
    fn other_texts_and_structured_errors_are_not_lost() {
        let structured = json!({"rows": 3});
        let noted = called(&text("Only the first 3 of 900 rows."), &structured);
        assert_eq!(noted.for_model()["structuredContent"], structured);
        assert_eq!(noted.for_model()["content"][0]["text"], "Only the first 3 of 900 rows.");
        assert_eq!(noted.value(), structured);
        assert_eq!(noted.complaint(), "Only the first 3 of 900 rows.\n{\"rows\":3}");
        assert_eq!(called(&json!([]), &structured).complaint(), "{\"rows\":3}");
        assert_eq!(called(&text("{\"rows\":3}"), &structured).complaint(), "{\"rows\":3}");
        assert_eq!(called(&json!([]), &Value::Null).complaint(), "the tool failed and does not say why");
    }
}
