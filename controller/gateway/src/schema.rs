//! Input schemas of agents and skills as those of tools: a tool's arguments are an object, and strict clients refuse a whole list of tools in
//! which the schema of one is anything else.

use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};

/// The member that holds an input that is no object.
pub(crate) const INPUT: &str = "input";

/// What lets a schema without a type be one of something else than an object.
const OTHERWISE: [&str; 9] = ["allOf", "anyOf", "oneOf", "not", "if", "$ref", "$dynamicRef", "enum", "const"];
/// Keywords whose members have names of their own, which may be those of keywords.
const NAMED: [&str; 5] = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];
/// Keywords whose values are data, not schemas.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];

/// An input schema as it is offered.
#[derive(Debug, PartialEq)]
pub(crate) struct Offered {
    pub(crate) schema: JsonObject,
    /// Whether the input is the member [`INPUT`] of the arguments, and not the arguments themselves.
    wrapped: bool,
}

impl Offered {
    /// Offers a schema; without one, any object.
    pub(crate) fn new(schema: Option<&Value>) -> Self {
        match as_object(schema) {
            Some(schema) => Self { schema, wrapped: false },
            None => Self { schema: wrapped(schema), wrapped: true },
        }
    }

    /// The input in the arguments of a call.
    pub(crate) fn input(&self, mut arguments: JsonObject) -> Value {
        match self.wrapped {
            true => arguments.remove(INPUT).unwrap_or_default(),
            false => Value::Object(arguments),
        }
    }
}

/// A schema of objects in the form that every client knows; none if it is one of something else.
fn as_object(schema: Option<&Value>) -> Option<JsonObject> {
    let mut schema = match schema {
        None | Some(Value::Null | Value::Bool(true)) => Map::new(),
        Some(Value::Object(schema)) => schema.clone(),
        Some(_) => return None,
    };
    let of_objects = match schema.get("type") {
        None => !OTHERWISE.iter().any(|keyword| schema.contains_key(*keyword)),
        Some(Value::String(name)) => name == "object",
        // Arguments are always an object, so the other types never occur.
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        Some(_) => false,
    };
    if !of_objects {
        return None;
    }
    schema.insert("type".into(), "object".into());
    match schema.get_mut("properties") {
        None => {}
        Some(Value::Object(properties)) => {
            for property in properties.values_mut() {
                match property {
                    Value::Object(_) => {}
                    Value::Bool(true) => *property = json!({}),
                    Value::Bool(false) => *property = json!({ "not": {} }),
                    _ => return None,
                }
            }
        }
        Some(_) => return None,
    }
    match schema.get("required") {
        None => Some(schema),
        Some(Value::Array(names)) if names.iter().all(Value::is_string) => Some(schema),
        Some(_) => None,
    }
}

/// The schema of an object whose only member has a schema.
fn wrapped(schema: Option<&Value>) -> JsonObject {
    let mut inner = match schema {
        Some(Value::Object(schema)) => Value::Object(schema.clone()),
        Some(Value::Bool(false)) => json!({ "not": {} }),
        _ => json!({}),
    };
    let mut outer = JsonObject::new();
    if let Value::Object(members) = &mut inner {
        // Only the root says which JSON Schema it is, and an address there would change what references mean.
        outer.extend(members.remove("$schema").map(|dialect| ("$schema".to_owned(), dialect)));
        members.remove("$id");
    }
    move_references(&mut inner);
    outer.insert("type".into(), "object".into());
    outer.insert("properties".into(), json!({ INPUT: inner }));
    outer.insert("required".into(), json!([INPUT]));
    outer
}

/// Points references into the schema to its new place.
fn move_references(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (name, value) in members.iter_mut() {
                match value {
                    Value::String(at) if name == "$ref" && (at == "#" || at.starts_with("#/")) => {
                        at.insert_str(1, "/properties/input");
                    }
                    Value::Object(named) if NAMED.contains(&name.as_str()) => {
                        named.values_mut().for_each(move_references);
                    }
                    value if !DATA.contains(&name.as_str()) => move_references(value),
                    _ => {}
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(move_references),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(schema: &Value) -> (Value, bool) {
        let offered = Offered::new(Some(schema));
        (Value::Object(offered.schema), offered.wrapped)
    }

    #[test]
    fn schemas_of_objects_stay_what_they_are() {
        let plain = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] });
        assert_eq!(offered(&plain), (plain, false));
        let object = json!({ "type": "object" });
        for same in [json!({}), json!(true), json!({ "type": ["null", "object"] })] {
            assert_eq!(offered(&same), (object.clone(), false), "{same}");
        }
        assert_eq!(
            Offered::new(None),
            Offered { schema: Map::from_iter([("type".into(), "object".into())]), wrapped: false }
        );
        let loose = json!({ "properties": { "a": true, "b": false } });
        let strict = json!({ "properties": { "a": {}, "b": { "not": {} } }, "type": "object" });
        assert_eq!(offered(&loose), (strict, false));
    }

    #[test]
    fn what_is_no_object_is_a_member() {
        for other in [
            json!({ "type": "array" }),
            json!({ "type": ["string", "null"] }),
            json!({ "anyOf": [{ "type": "object" }, { "type": "string" }] }),
            json!({ "$ref": "https://a.example/s" }),
            json!({ "enum": [1] }),
            json!({ "type": "object", "required": true }),
        ] {
            let wanted = json!({ "type": "object", "properties": { "input": other }, "required": ["input"] });
            assert_eq!(offered(&other), (wanted, true));
        }
        let input = |wrapped, arguments: Value| {
            let offered = Offered { schema: Map::new(), wrapped };
            offered.input(arguments.as_object().cloned().unwrap_or_default())
        };
        assert_eq!(input(true, json!({ "input": [1] })), json!([1]));
        assert_eq!(input(true, json!({})), Value::Null);
        assert_eq!(input(false, json!({ "input": [1] })), json!({ "input": [1] }));
    }

    #[test]
    fn references_follow_their_schema() {
        let tree = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://a.example/tree",
            "type": "array", "items": { "$ref": "#" }, "contains": { "$ref": "#/$defs/leaf" },
            "$defs": {
                "leaf": { "const": { "$ref": "#" }, "description": "#/a" },
                "default": { "properties": { "const": { "$ref": "#" }, "$ref": { "$ref": "#/$defs/leaf" } } }
            }
        });
        let wanted = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": { "input": {
                "type": "array", "items": { "$ref": "#/properties/input" },
                "contains": { "$ref": "#/properties/input/$defs/leaf" },
                "$defs": {
                    "leaf": { "const": { "$ref": "#" }, "description": "#/a" },
                    "default": { "properties": {
                        "const": { "$ref": "#/properties/input" },
                        "$ref": { "$ref": "#/properties/input/$defs/leaf" }
                    } }
                }
            } },
            "required": ["input"]
        });
        assert_eq!(offered(&tree), (wanted, true));
    }
}
