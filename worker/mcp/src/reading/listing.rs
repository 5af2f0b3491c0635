//! Pages of tools.

use atlas_mcp_spec::{RemoteTool, TOOLS_MAX};
use rmcp::model::ListToolsResult;
use serde_json::{Map, Value, json};

use crate::tools::Complaints;

/// Where a page says what is left out of it. What a server has there is overwritten.
const LEFT_OUT: &str = "atlas/left-out";
/// How many more there are.
const MORE: &str = "atlas/left-out-more";

/// A page with the tools that can be read, and with complaints about the others.
pub(super) fn tidied(result: &Value) -> Result<Value, String> {
    let Some(Value::Array(items)) = result.get("tools") else {
        return Err("it has no list \"tools\"".to_owned());
    };
    let (mut tools, mut complaints) = (Vec::new(), Complaints::default());
    // One more than allowed is enough to see that there are too many.
    for (place, item) in items.iter().enumerate().take(TOOLS_MAX * 2) {
        match RemoteTool::read(item, place + 1) {
            Ok(tool) => tools.push(tool.definition()),
            Err(why) => complaints.push(|| why),
        }
    }
    let mut page = Map::from_iter([("tools".to_owned(), Value::Array(tools))]);
    match result.get("nextCursor") {
        Some(Value::String(cursor)) => _ = page.insert("nextCursor".to_owned(), json!(cursor)),
        Some(Value::Null) | None => {}
        Some(_) => complaints.push(|| "\"nextCursor\" is not a text, so what follows is not read".to_owned()),
    }
    page.insert("_meta".to_owned(), json!({ LEFT_OUT: complaints.told, MORE: complaints.more }));
    Ok(Value::Object(page))
}

/// What is left out of a page.
pub(crate) fn left_out(page: &ListToolsResult) -> Complaints {
    let Some(meta) = page.meta.as_ref() else { return Complaints::default() };
    let told = meta.get(LEFT_OUT).and_then(Value::as_array).into_iter().flatten();
    let told = told.filter_map(Value::as_str).map(str::to_owned).collect();
    Complaints { told, more: meta.get(MORE).and_then(Value::as_u64).unwrap_or_default() }
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
            left_out(&page).told,
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
