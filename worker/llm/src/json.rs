//! JSON of a provider: parsing with bounds, and access to members without a panic.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::bounds::JSON_VALUES_MAX;

/// Why a text was not read.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// It is not JSON, or nested deeper than 127 levels.
    #[error("not JSON: {0}")]
    Syntax(serde_json::Error),
    /// It has so many values that it would need much more memory than its text.
    #[error("JSON with more than {JSON_VALUES_MAX} values")]
    TooMany,
}

/// The byte order mark that some servers put before a text.
pub const MARK: &[u8] = "\u{feff}".as_bytes();

/// Parses a document of at most [`JSON_VALUES_MAX`] values. A byte order mark before it is no part of it.
pub fn parse(text: &[u8]) -> Result<Value, JsonError> {
    let text = text.strip_prefix(MARK).unwrap_or(text);
    if text.len() > JSON_VALUES_MAX && separators(text) >= JSON_VALUES_MAX {
        return Err(JsonError::TooMany);
    }
    serde_json::from_slice(text).map_err(JsonError::Syntax)
}

/// The characters outside strings that a value can follow.
fn separators(text: &[u8]) -> usize {
    let (mut count, mut inside, mut escaped) = (0, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b',' | b'[' | b'{' | b':' if !inside => count += 1,
            _ => {}
        }
    }
    count
}

/// The text at a pointer (`/error/message`); empty texts count as absent.
pub fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// The count at a pointer. Absent, negative and other values are 0.
pub fn count(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

/// The elements of the list at a pointer.
pub fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The members of an object that are not in `known`: what [`Answer::raw`](atlas_model::Answer::raw) keeps.
pub fn unknown(object: &Value, known: &[&str]) -> Map<String, Value> {
    let members = object.as_object().into_iter().flatten();
    let unknown = members.filter(|(name, value)| !known.contains(&name.as_str()) && !value.is_null());
    unknown.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The schema of a tool's arguments. A tool without parameters has an empty object.
pub fn parameters(schema: &Value) -> Value {
    match schema {
        Value::Object(members) if !members.is_empty() => schema.clone(),
        _ => serde_json::json!({ "type": "object", "properties": {} }),
    }
}

/// Arguments of an earlier call as an object, which is what providers and their templates expect. Arguments that were no
/// object become one, so that the model sees what it wrote.
pub fn arguments(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::Object(_) => Cow::Borrowed(value),
        value => Cow::Owned(serde_json::json!({ "invalid_arguments": value })),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_are_bounded() {
        assert_eq!(parse(br#"{"a": [1, "x,y"]}"#).expect("valid"), json!({"a": [1, "x,y"]}));
        assert_eq!(parse("\u{feff}{}".as_bytes()).expect("valid"), json!({}));
        assert!(matches!(parse(b"{"), Err(JsonError::Syntax(_))));
        assert!(matches!(parse("[".repeat(1000).as_bytes()), Err(JsonError::Syntax(_))));
        let many = format!("[{}0]", "0,".repeat(JSON_VALUES_MAX));
        assert!(matches!(parse(many.as_bytes()), Err(JsonError::TooMany)));
        let text = format!("[\"\\\"{}\"]", ",[".repeat(JSON_VALUES_MAX));
        assert!(parse(text.as_bytes()).is_ok(), "separators in strings do not count");
    }

    #[test]
    fn arguments_are_objects() {
        assert_eq!(*arguments(&json!({"a": 1})), json!({"a": 1}));
        assert_eq!(*arguments(&json!("{\"a")), json!({"invalid_arguments": "{\"a"}));
    }

    #[test]
    fn members_are_found_or_absent() {
        let value = json!({"error": {"message": "no", "code": ""}, "n": 3, "minus": -1, "list": [1], "none": null});
        assert_eq!(text(&value, "/error/message"), Some("no"));
        assert_eq!(text(&value, "/error/code"), None);
        assert_eq!(text(&json!([]), "/error"), None);
        assert_eq!((count(&value, "/n"), count(&value, "/minus"), count(&value, "/x")), (3, 0, 0));
        assert_eq!((list(&value, "/list").len(), list(&value, "/n").len()), (1, 0));
        assert_eq!(unknown(&value, &["error", "list"]).keys().collect::<Vec<_>>(), ["n", "minus"]);
    }
}
