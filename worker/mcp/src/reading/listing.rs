//! Pages of tools.

use atlas_mcp_spec::{RemoteTool, TOOLS_MAX};
use rmcp::model::ListToolsResult;
use serde_json::{Map, Value, json};

/// Where a page says what is left out of it. What a server has there is overwritten.
const LEFT_OUT: &str = "atlas/left-out";
/// Most complaints of one page.
const COMPLAINTS_MAX: usize = 32;

/// A page with the tools that can be read, and with complaints about the others.
pub(super) fn tidied(result: &Value) -> Result<Value, String> {
    let Some(Value::Array(items)) = result.get("tools") else {
        return Err("it has no list \"tools\"".to_owned());
    };
    let (mut tools, mut complaints) = (Vec::new(), Vec::new());
    // One more than allowed is enough to see that there are too many.
    for (place, item) in items.iter().enumerate().take(TOOLS_MAX * 2) {
        match RemoteTool::read(item, place + 1) {
            Ok(tool) => tools.push(tool.definition()),
            Err(why) if complaints.len() < COMPLAINTS_MAX => complaints.push(why),
            Err(_) => {}
        }
    }
    let mut page = Map::from_iter([("tools".to_owned(), Value::Array(tools))]);
    match result.get("nextCursor") {
        Some(Value::String(cursor)) => _ = page.insert("nextCursor".to_owned(), json!(cursor)),
        Some(Value::Null) | None => {}
        Some(_) => complaints.push("\"nextCursor\" is not a text, so what follows is not read".to_owned()),
    }
    page.insert("_meta".to_owned(), json!({ LEFT_OUT: complaints }));
    Ok(Value::Object(page))
}

/// What is left out of a page.
pub(crate) fn left_out(page: &ListToolsResult) -> Vec<String> {
    let complaints = page.meta.as_ref().and_then(|meta| meta.get(LEFT_OUT)).and_then(Value::as_array);
    complaints.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_tool_takes_no_other_away() {
        let page = json!({
            "tools": [{"name": "a", "inputSchema": {}, "annotations": 1}, {"name": "b"}, 5], "nextCursor": 2, "ttlMs": 60_000,
            "_meta": {LEFT_OUT: ["a lie"]},
        });
        let page: ListToolsResult = serde_json::from_value(tidied(&page).expect("a page")).expect("readable");
        assert_eq!(page.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["a"]);
        assert_eq!(
            left_out(&page),
            [
                "tool \"b\" has no \"inputSchema\"",
                "tool 3 is not an object",
                "\"nextCursor\" is not a text, so what follows is not read"
            ]
        );
        assert_eq!((page.next_cursor, page.ttl_ms), (None, None));
        assert_eq!(tidied(&json!({"tools": {}})), Err("it has no list \"tools\"".to_owned()));
    }
}
