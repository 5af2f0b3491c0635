//! Models send objects and lists as their text now and then. Where a schema asks for one and takes no text, the text is read.

use rmcp::model::JsonObject;
use serde_json::{Map, Value};

/// How many references, and how many alternatives within each other, are followed to find out what a schema takes.
const FOLLOWED_MAX: usize = 8;
/// How many alternatives are looked at. A schema with more counts as one that takes texts.
const ALTERNATIVES_MAX: usize = 256;

/// Reads the texts in arguments that fit a schema only as what they say.
pub(crate) fn read(arguments: &mut JsonObject, schema: &JsonObject) {
    Reader { root: schema }.members(arguments, schema);
}

/// The same for an input of any kind.
pub(crate) fn read_input(input: &mut Value, schema: &Value) {
    let Value::Object(root) = schema else { return };
    Reader { root }.value(input, root);
}

/// Whether a value contains a text that may be an object or a list.
pub(crate) fn are_in(value: &Value) -> bool {
    match value {
        Value::String(text) => text.trim_start().starts_with(['{', '[']),
        Value::Array(items) => items.iter().any(are_in),
        Value::Object(members) => members.values().any(are_in),
        _ => false,
    }
}

/// What a schema takes, as far as it says so.
#[derive(Default)]
struct Takes {
    texts: bool,
    /// The alternatives that were looked at.
    seen: usize,
    objects: bool,
    lists: bool,
}

struct Reader<'a> {
    root: &'a Map<String, Value>,
}

impl<'a> Reader<'a> {
    fn members(&self, members: &mut JsonObject, schema: &'a Map<String, Value>) {
        let Some(Value::Object(properties)) = schema.get("properties") else { return };
        for (name, value) in members.iter_mut() {
            if let Some(Value::Object(property)) = properties.get(name) {
                self.value(value, property);
            }
        }
    }

    fn value(&self, value: &mut Value, schema: &'a Map<String, Value>) {
        let schema = self.followed(schema);
        if let Value::String(text) = value {
            let mut takes = Takes::default();
            self.takes(schema, &mut takes, FOLLOWED_MAX);
            if takes.texts {
                return;
            }
            match serde_json::from_str::<Value>(text) {
                Ok(read) if takes.objects && read.is_object() || takes.lists && read.is_array() => *value = read,
                _ => return,
            }
        }
        match value {
            Value::Object(members) => self.members(members, schema),
            Value::Array(items) => {
                if let Some(Value::Object(item)) = schema.get("items") {
                    items.iter_mut().for_each(|value| self.value(value, item));
                }
            }
            _ => {}
        }
    }

    /// What a schema is that is a reference into its root.
    fn followed(&self, mut schema: &'a Map<String, Value>) -> &'a Map<String, Value> {
        for _ in 0..FOLLOWED_MAX {
            match self.referred(schema) {
                Some(next) => schema = next,
                None => break,
            }
        }
        schema
    }

    fn referred(&self, schema: &'a Map<String, Value>) -> Option<&'a Map<String, Value>> {
        let mut parts = schema.get("$ref")?.as_str()?.strip_prefix('#')?.split('/');
        parts.next();
        let decoded = |part: &str| part.replace("~1", "/").replace("~0", "~");
        parts.try_fold(self.root, |at, part| at.get(&decoded(part))?.as_object())
    }

    fn takes(&self, schema: &'a Map<String, Value>, takes: &mut Takes, depth: usize) {
        let schema = self.followed(schema);
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        takes.texts |= types.contains(&"string");
        takes.objects |= types.contains(&"object");
        takes.lists |= types.contains(&"array");
        if !types.is_empty() || depth == 0 {
            return;
        }
        let alternatives = ["anyOf", "oneOf"].iter().filter_map(|name| schema.get(*name)?.as_array()).flatten();
        let mut any = false;
        for alternative in alternatives {
            any = true;
            takes.seen += 1;
            takes.texts |= takes.seen > ALTERNATIVES_MAX;
            // One that takes texts leaves them as they are, whatever else it takes.
            if takes.texts {
                return;
            }
            match alternative {
                Value::Object(alternative) => self.takes(alternative, takes, depth - 1),
                _ => takes.texts = true,
            }
        }
        // A schema that says nothing takes texts.
        takes.texts |= !any;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(schema: &Value, value: impl Into<Value>) -> Value {
        let value: Value = value.into();
        let mut input = json!({ "a": value });
        let schema = json!({
            "type": "object", "properties": { "a": schema },
            "$defs": { "o": { "type": "object", "properties": { "b": { "type": "array" } } }, "me": { "$ref": "#/$defs/me" } }
        });
        read_input(&mut input, &schema);
        input["a"].take()
    }

    #[test]
    fn texts_are_read_where_no_text_is_due() {
        let object = json!({ "type": "object" });
        assert_eq!(told(&object, json!("{\"x\": 1.0}")).to_string(), r#"{"x":1.0}"#);
        assert_eq!(told(&json!({ "type": ["array", "null"] }), json!(" [1] ")), json!([1]));
        let optional = json!({ "anyOf": [{ "$ref": "#/$defs/o" }, { "type": "null" }] });
        assert_eq!(told(&optional, json!("{}")), json!({}));
        let deep = json!({ "$ref": "#/$defs/o" });
        assert_eq!(told(&deep, json!("{\"b\": \"[2]\"}")), json!({ "b": [2] }));
        assert_eq!(told(&json!({ "type": "array", "items": object }), json!(["{}", "x"])), json!([{}, "x"]));
    }

    #[test]
    fn other_texts_stay() {
        for schema in [
            json!({ "type": "string" }),
            json!({ "type": ["object", "string"] }),
            json!({}),
            json!(true),
            json!({ "anyOf": [{ "type": "object" }, { "type": "string" }] }),
            json!({ "anyOf": [{ "type": "object" }, true] }),
            json!({ "type": "integer" }),
            json!({ "type": "array" }),
            json!({ "$ref": "#/$defs/me" }),
        ] {
            assert_eq!(told(&schema, json!("{}")), json!("{}"), "{schema}");
        }
        for text in ["x", "{", "1", "[]"] {
            assert_eq!(told(&json!({ "type": "object" }), json!(text)), json!(text));
        }
    }

    #[test]
    fn alternatives_without_end_are_left() {
        let again: Vec<Value> = (0..30).map(|_| json!({ "$ref": "#/$defs/many" })).collect();
        let mut input = json!({ "a": "{}" });
        let schema = json!({
            "type": "object", "properties": { "a": { "$ref": "#/$defs/many" } }, "$defs": { "many": { "anyOf": again } }
        });
        read_input(&mut input, &schema);
        assert_eq!(input, json!({ "a": "{}" }));
    }

    #[test]
    fn values_without_such_texts_need_no_schema() {
        assert!(are_in(&json!({ "a": [" {\"b\"}"] })) && are_in(&json!("[")));
        assert!(!are_in(&json!({ "a": ["x{", 1, null], "[": {} })));
    }
}
