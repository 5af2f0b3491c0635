//! A message as the events of a stream.

use serde_json::{Value, json};

/// All events as one body.
pub(crate) fn events(message: &Value) -> String {
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = json!(1);
    let mut text = event("message_start", &json!({"message": start}));
    let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, block) in blocks.iter().enumerate() {
        let (start, deltas) = pieces(block);
        text.push_str(&event("content_block_start", &json!({"index": index, "content_block": start})));
        for delta in deltas {
            text.push_str(&event("content_block_delta", &json!({"index": index, "delta": delta})));
        }
        text.push_str(&event("content_block_stop", &json!({"index": index})));
    }
    let delta = json!({"stop_reason": message["stop_reason"], "stop_sequence": null});
    let usage = json!({"output_tokens": message["usage"]["output_tokens"]});
    text.push_str(&event("message_delta", &json!({"delta": delta, "usage": usage})));
    text.push_str(&event("message_stop", &json!({})));
    text
}

/// The beginning of a block, and its pieces.
fn pieces(block: &Value) -> (Value, Vec<Value>) {
    if block["type"] == "tool_use" {
        let start = json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}});
        return (start, vec![json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})]);
    }
    let words = block["text"].as_str().unwrap_or_default().split_inclusive(' ');
    (json!({"type": "text", "text": ""}), words.map(|word| json!({"type": "text_delta", "text": word})).collect())
}

fn event(kind: &str, data: &Value) -> String {
    let mut data = data.clone();
    data["type"] = json!(kind);
    format!("event: {kind}\ndata: {data}\n\n")
}
