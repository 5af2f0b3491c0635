//! Results of tools.

use rmcp::model::ContentBlock;
use serde_json::{Map, Value, json};

/// Most bytes of something that cannot be used, in the text about it.
const SHOWN_BYTES_MAX: usize = 2 << 10;
/// Longest text within it. Data of images and videos is longer.
const INNER_BYTES_MAX: usize = 200;
/// Members of a result that is not there yet: it asks for input, or is a task.
const LATER: [&str; 3] = ["task", "inputRequests", "requestState"];

/// A result of which everything can be read.
pub(super) fn tidied(result: Value) -> Value {
    let Value::Object(mut members) = result else {
        return json!({ "content": [text(&result)] });
    };
    let is_known = ["content", "structuredContent", "isError"].iter().any(|name| members.contains_key(*name));
    if !is_known {
        // Not there yet, or something that is no result of a tool. The model reads it as it is.
        let is_later = LATER.iter().any(|name| members.contains_key(*name))
            || members.get("resultType").is_some_and(|kind| kind != "complete");
        return match is_later {
            true => Value::Object(members),
            false => json!({ "content": [text(&Value::Object(members))] }),
        };
    }
    let content = match members.remove("content") {
        Some(Value::Array(blocks)) => blocks.into_iter().map(block).collect(),
        Some(Value::Null) | None => Vec::new(),
        Some(one @ Value::Object(_)) => vec![block(one)],
        Some(other) => vec![text(&other)],
    };
    let mut tidy = Map::from_iter([("content".to_owned(), Value::Array(content))]);
    if let Some(structured) = members.remove("structuredContent") {
        tidy.insert("structuredContent".to_owned(), structured);
    }
    let is_error = members.get("isError");
    let is_error = is_error.is_some_and(|said| match said {
        Value::Bool(said) => *said,
        Value::String(said) => said.eq_ignore_ascii_case("true"),
        Value::Number(said) => said.as_i64() == Some(1),
        _ => false,
    });
    tidy.insert("isError".to_owned(), is_error.into());
    Value::Object(tidy)
}

/// A block as it is, without the hints for programs that show it; or a text that says what it is.
fn block(mut block: Value) -> Value {
    if let Value::Object(members) = &mut block {
        for hint in ["annotations", "_meta", "icons"] {
            members.remove(hint);
        }
        if let Some(Value::Object(resource)) = members.get_mut("resource") {
            resource.remove("_meta");
        }
        if matches!(members.get("type").and_then(Value::as_str), Some("image" | "audio")) {
            members.entry("mimeType").or_insert_with(|| "application/octet-stream".into());
        }
    }
    if serde_json::from_value::<ContentBlock>(block.clone()).is_ok() {
        return block;
    }
    let what = match block.get("type").and_then(Value::as_str) {
        Some(kind @ ("text" | "image" | "audio" | "resource" | "resource_link")) => {
            format!("a block of the type \"{kind}\" that cannot be read")
        }
        Some(kind) => format!("a block of the unknown type {:?}", kind.chars().take(64).collect::<String>()),
        None => "a block without a type".to_owned(),
    };
    json!({ "type": "text", "text": format!("[{what}: {}]", shown(block)) })
}

/// Something that is no block.
fn text(value: &Value) -> Value {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    json!({ "type": "text", "text": text })
}

/// A value without its long texts, cut if it is long.
fn shown(mut value: Value) -> String {
    shorten(&mut value);
    let mut text = value.to_string();
    if text.len() > SHOWN_BYTES_MAX {
        text.truncate(text.floor_char_boundary(SHOWN_BYTES_MAX));
        text.push('…');
    }
    text
}

/// The depth of a value is that of the parser at most.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > INNER_BYTES_MAX => *text = format!("{} bytes left out", text.len()),
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(members) => members.values_mut().for_each(shorten),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn unknown_blocks_and_hints_lose_nothing() {
        let result = json!({
            "content": [
                {"type": "text", "text": "one", "annotations": {"audience": ["robot"], "priority": "high"}},
                {"type": "video", "data": "x".repeat(4_000), "mimeType": "video/mp4"},
                {"type": "text", "text": 5}, {"type": "image", "data": "aGk="}, "bare", {"text": "no type"},
                {"type": "resource", "resource": {"uri": "a:b", "text": "t", "_meta": 1}},
            ],
            "isError": "true", "more": 1
        });
        let result = tidied(result);
        expect![[r#"
            {"type":"text","text":"one"}
            {"type":"text","text":"[a block of the unknown type \"video\": {\"type\":\"video\",\"data\":\"4000 bytes left out\",\"mimeType\":\"video/mp4\"}]"}
            {"type":"text","text":"[a block of the type \"text\" that cannot be read: {\"type\":\"text\",\"text\":5}]"}
            {"type":"image","data":"aGk=","mimeType":"application/octet-stream"}
            {"type":"text","text":"[a block without a type: \"bare\"]"}
            {"type":"text","text":"[a block without a type: {\"text\":\"no type\"}]"}
            {"type":"resource","resource":{"uri":"a:b","text":"t"}}"#]]
        .assert_eq(&result["content"].as_array().expect("blocks").iter().map(Value::to_string).collect::<Vec<_>>().join("\n"));
        assert_eq!(result["isError"], true);
    }

    #[test]
    fn results_in_other_forms_are_texts() {
        assert_eq!(tidied(json!("done"))["content"][0]["text"], "done");
        assert_eq!(tidied(json!({"content": "done"}))["content"][0]["text"], "done");
        assert_eq!(tidied(json!({"sum": 3}))["content"][0]["text"], r#"{"sum":3}"#);
        assert_eq!(tidied(Value::Null)["content"][0]["text"], "null");
        let task = json!({"task": {"taskId": "t"}});
        assert_eq!(tidied(task.clone()), task);
    }
}
