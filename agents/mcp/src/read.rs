//! Reads the definitions that a server lists, one by one: a malformed one must not take the others away.

use serde_json::Value;

use crate::RemoteTool;
use crate::tool::is_name;

/// Most characters of a name in a complaint.
const SHOWN_CHARS_MAX: usize = 64;

impl RemoteTool {
    /// Reads a definition. `number` is its place in the list, from 1. The error names the tool, or its number, and the member.
    pub fn read(item: &Value, number: usize) -> Result<Self, String> {
        let numbered = |why: &str| format!("tool {number} {why}");
        let Value::Object(members) = item else { return Err(numbered("is not an object")) };
        let name = match members.get("name") {
            Some(Value::String(name)) if is_name(name) => name,
            Some(Value::String(name)) if name.is_empty() => return Err(numbered("has an empty \"name\"")),
            Some(Value::String(_)) => return Err(numbered("has a \"name\" that is too long or not printable")),
            Some(Value::Null) | None => return Err(numbered("has no \"name\"")),
            Some(_) => return Err(numbered("has a \"name\" that is not a text")),
        };
        let named = |why: &str| format!("tool \"{}\" {why}", cut(name));
        let description = match members.get("description") {
            Some(Value::String(description)) => description.clone(),
            Some(Value::Null) | None => String::new(),
            Some(_) => return Err(named("has a \"description\" that is not a text")),
        };
        let input_schema = match members.get("inputSchema") {
            Some(schema @ Value::Object(_)) => schema.clone(),
            Some(Value::Null) | None => return Err(named("has no \"inputSchema\"")),
            Some(_) => return Err(named("has an \"inputSchema\" that is not an object")),
        };
        Ok(Self { name: name.clone(), description, input_schema })
    }
}

fn cut(name: &str) -> String {
    name.chars().take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_definition_that_cannot_be_read_is_named() {
        let told = |item: Value| RemoteTool::read(&item, 3).map(|tool| tool.name);
        let fine = json!({"name": "add", "inputSchema": {}, "title": 7, "annotations": "odd", "icons": 1, "_meta": []});
        assert_eq!(told(fine), Ok("add".to_owned()));
        for (item, why) in [
            (json!("add"), "tool 3 is not an object"),
            (json!({"inputSchema": {}}), "tool 3 has no \"name\""),
            (json!({"name": "", "inputSchema": {}}), "tool 3 has an empty \"name\""),
            (json!({"name": 5, "inputSchema": {}}), "tool 3 has a \"name\" that is not a text"),
            (json!({"name": "a\nb", "inputSchema": {}}), "tool 3 has a \"name\" that is too long or not printable"),
            (json!({"name": "add"}), "tool \"add\" has no \"inputSchema\""),
            (json!({"name": "add", "inputSchema": true}), "tool \"add\" has an \"inputSchema\" that is not an object"),
            (
                json!({"name": "add", "description": 1, "inputSchema": {}}),
                "tool \"add\" has a \"description\" that is not a text",
            ),
        ] {
            assert_eq!(told(item), Err(why.to_owned()));
        }
    }
}
