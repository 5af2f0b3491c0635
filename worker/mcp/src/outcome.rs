//! What a call came to.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value, json};

use crate::bounds::RESULT_BYTES_MAX;
use crate::error::{McpError, McpErrorKind};

/// The result of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    /// The tool says that it failed.
    pub is_error: bool,
    /// The result as the protocol has it: `content`, `structuredContent` and `isError`. Data of images and sounds is left out.
    pub raw: Value,
}

impl Called {
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
        let blocks = self.raw["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        texts.join("\n")
    }

    /// The value for a model: the structured result if there is one, the text if there is only text, otherwise all blocks.
    pub fn value(&self) -> Value {
        if let Some(structured) = self.raw.get("structuredContent").filter(|value| !value.is_null()) {
            return structured.clone();
        }
        let blocks = self.raw["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        if blocks.iter().all(|block| block["type"] == "text") {
            return Value::String(self.text());
        }
        json!({ "content": blocks })
    }
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
