//! Schemas of tools as every provider takes them. Providers refuse a whole request for one schema that they do not like, and a job may go
//! from one provider to another, so the rules are those of the strictest. What is rewritten means the same or is wider: the server checks
//! the arguments itself.

mod keys;
mod top;
mod types;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

pub use self::keys::for_server;

/// Deepest nesting. The parser ends at 128.
const DEPTH_MAX: usize = 100;

/// The path to a schema ends at about this length, and so does each name in it.
const PLACE_BYTES_MAX: usize = 256;

/// Keywords whose value is a schema, a list of them, or an object of them.
const ONE: [&str; 10] = [
    "items",
    "additionalProperties",
    "propertyNames",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
const NAMED: [&str; 5] = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

/// Keywords whose value is a number, and of those the ones that count something.
const NUMBERS: [&str; 5] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
const COUNTS: [&str; 8] =
    ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"];
const TEXTS: [&str; 6] = ["description", "title", "format", "pattern", "contentEncoding", "contentMediaType"];

/// The schema of a tool's arguments as models get it. The error says what cannot be rewritten, and where.
pub fn for_models(schema: &Value) -> Result<Value, String> {
    let Value::Object(members) = schema else { return Err("its schema is not an object".to_owned()) };
    let mut schema = members.clone();
    for name in ["$schema", "$id", "id"] {
        if schema.get(name).is_some_and(Value::is_string) {
            schema.shift_remove(name);
        }
    }
    let schema = object(schema, "", 0)?;
    let schema = top::flat(schema)?;
    Ok(Value::Object(keys::legal(schema)?))
}

/// A schema within the one of a tool. `place` is where it is, for the error.
fn node(schema: Value, place: &str, depth: usize) -> Result<Value, String> {
    match schema {
        Value::Object(members) => object(members, place, depth).map(Value::Object),
        Value::Bool(true) => Ok(json!({})),
        Value::Bool(false) => Ok(json!({ "not": {} })),
        _ => Err(format!("{} is not a schema", shown(place))),
    }
}

fn object(mut schema: Map<String, Value>, place: &str, depth: usize) -> Result<Map<String, Value>, String> {
    if depth > DEPTH_MAX {
        return Err(format!("{} is nested too deeply", shown(place)));
    }
    check_reference(&schema, place)?;
    types::tidy(&mut schema).map_err(|why| format!("{} {why}", shown(place)))?;
    bounds(&mut schema);
    texts(&mut schema);
    choices(&mut schema, place)?;
    tuple(&mut schema);
    dependencies(&mut schema);
    required(&mut schema);
    children(&mut schema, place, depth)?;
    let is_array = types::has(&schema, "array");
    if is_array && !schema.contains_key("items") {
        schema.insert("items".to_owned(), json!({}));
    }
    Ok(schema)
}

fn shown(place: &str) -> String {
    if place.is_empty() { "its schema".to_owned() } else { format!("{place} of its schema") }
}

/// Refuses what is described elsewhere.
fn check_reference(schema: &Map<String, Value>, place: &str) -> Result<(), String> {
    for name in ["$ref", "$dynamicRef", "$recursiveRef"] {
        match schema.get(name) {
            None => {}
            Some(Value::String(target)) if target.starts_with('#') => {}
            Some(_) => return Err(format!("{} refers to another document", shown(place))),
        }
    }
    Ok(())
}

/// Bounds as numbers: those of draft 4, where an exclusive bound is a flag, and numbers in texts. Others say nothing and go.
fn bounds(schema: &mut Map<String, Value>) {
    for (exclusive, inclusive) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if let Some(Value::Bool(is_exclusive)) = schema.get(exclusive) {
            let is_exclusive = *is_exclusive;
            schema.shift_remove(exclusive);
            if is_exclusive && let Some(bound) = schema.shift_remove(inclusive) {
                schema.insert(exclusive.to_owned(), bound);
            }
        }
    }
    for name in NUMBERS.into_iter().chain(COUNTS) {
        let Some(value) = schema.get_mut(name) else { continue };
        if let Some(read) = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok()) {
            *value = read;
        }
        let is_sound = match name {
            "multipleOf" => value.as_f64().is_some_and(|number| number > 0.0),
            name if COUNTS.contains(&name) => {
                if let Some(whole) =
                    value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=9e15).contains(number))
                {
                    // Exact up to 2^53.
                    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
                    let whole = whole as u64;
                    *value = whole.into();
                }
                value.is_u64()
            }
            _ => value.is_number(),
        };
        if !is_sound {
            schema.shift_remove(name);
        }
    }
}

fn texts(schema: &mut Map<String, Value>) {
    for name in TEXTS {
        if schema.get(name).is_some_and(|value| !value.is_string()) {
            schema.shift_remove(name);
        }
    }
    if schema.get("uniqueItems").is_some_and(|value| !value.is_boolean()) {
        schema.shift_remove("uniqueItems");
    }
}

/// Lists of values and of schemas have something in them.
fn choices(schema: &mut Map<String, Value>, place: &str) -> Result<(), String> {
    if let Some(values) = schema.get_mut("enum") {
        let Value::Array(items) = values else {
            return Err(format!("{} has an \"enum\" that is not a list", shown(place)));
        };
        let mut seen = BTreeSet::new();
        items.retain(|item| seen.insert(item.to_string()));
        if items.is_empty() {
            schema.shift_remove("enum");
        }
    }
    for name in ["anyOf", "oneOf", "allOf"] {
        if schema.get(name).is_some_and(|list| list.is_null() || list.as_array().is_some_and(Vec::is_empty)) {
            schema.shift_remove(name);
        }
    }
    Ok(())
}

/// A list of schemas for the items one after the other, as drafts before 2020-12 write it.
fn tuple(schema: &mut Map<String, Value>) {
    let rest = schema.get("additionalItems").cloned();
    if let Some(Value::Array(items)) = schema.get("items").cloned() {
        schema.shift_remove("items");
        let (mut choices, count) = (items.clone(), items.len());
        schema.insert("prefixItems".to_owned(), Value::Array(items));
        if schema.get("prefixItems").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            schema.shift_remove("prefixItems");
        }
        match rest {
            // Not every provider takes `false` here, so the number of items says it.
            Some(Value::Bool(false)) => {
                let max = schema.get("maxItems").and_then(Value::as_u64).unwrap_or(u64::MAX);
                schema.insert("maxItems".to_owned(), max.min(count as u64).into());
                choices.dedup();
                // Tuples within tuples would be copied twice at each level, so those are any items.
                let one = match choices.len() {
                    _ if choices.iter().any(has_schemas) => json!({}),
                    0 => json!({}),
                    1 => choices.remove(0),
                    _ => json!({ "anyOf": choices }),
                };
                schema.insert("items".to_owned(), one);
            }
            Some(rest @ Value::Object(_)) => _ = schema.insert("items".to_owned(), rest),
            _ => _ = schema.insert("items".to_owned(), json!({})),
        }
    }
    schema.shift_remove("additionalItems");
    if schema.contains_key("prefixItems") && !schema.contains_key("items") {
        schema.insert("items".to_owned(), json!({}));
    }
}

/// Whether a schema has others in it.
fn has_schemas(schema: &Value) -> bool {
    let names = || ONE.into_iter().chain(LISTS).chain(NAMED).chain(["additionalItems", "dependencies"]);
    names().any(|name| schema.get(name).is_some())
}

/// `dependencies` of drafts before 2019-09 are two keywords now.
fn dependencies(schema: &mut Map<String, Value>) {
    let Some(Value::Object(members)) = schema.shift_remove("dependencies") else { return };
    for (name, value) in members {
        let keyword = if value.is_array() { "dependentRequired" } else { "dependentSchemas" };
        let place = schema.entry(keyword).or_insert_with(|| json!({}));
        if let Value::Object(place) = place {
            place.insert(name, value);
        }
    }
}

/// `required` is a list of names. Draft 3 has it at each property.
fn required(schema: &mut Map<String, Value>) {
    let mut names: Vec<String> = match schema.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (name, property) in properties {
            let Some(members) = property.as_object_mut() else { continue };
            if let Some(Value::Bool(is_required)) = members.get("required") {
                if *is_required {
                    names.push(name.clone());
                }
                members.shift_remove("required");
            }
        }
    }
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    if names.is_empty() {
        schema.shift_remove("required");
    } else {
        schema.insert("required".to_owned(), json!(names));
    }
}

fn children(schema: &mut Map<String, Value>, place: &str, depth: usize) -> Result<(), String> {
    let at = |name: &str| match place.len() {
        0 => name.chars().take(PLACE_BYTES_MAX).collect(),
        PLACE_BYTES_MAX.. => place.to_owned(),
        _ => format!("{place}.{}", name.chars().take(PLACE_BYTES_MAX).collect::<String>()),
    };
    for name in NAMED {
        let Some(value) = schema.get_mut(name).map(Value::take) else { continue };
        let members = match value {
            Value::Object(members) => members,
            Value::Null => {
                schema.shift_remove(name);
                continue;
            }
            Value::Array(empty) if empty.is_empty() => Map::new(),
            _ => return Err(format!("{} is not an object of schemas", shown(&at(name)))),
        };
        let tidied: Result<Map<String, Value>, String> = members
            .into_iter()
            .map(|(key, schema)| Ok((key.clone(), node(schema, &at(&format!("{name}.{key}")), depth + 1)?)))
            .collect();
        schema.insert(name.to_owned(), Value::Object(tidied?));
    }
    for name in LISTS {
        let Some(value) = schema.get_mut(name).map(Value::take) else { continue };
        let Value::Array(items) = value else {
            return Err(format!("{} is not a list of schemas", shown(&at(name))));
        };
        let tidied: Result<Vec<Value>, String> =
            items.into_iter().map(|schema| node(schema, &at(name), depth + 1)).collect();
        schema.insert(name.to_owned(), Value::Array(tidied?));
    }
    for name in ONE {
        match schema.get(name).cloned() {
            None => {}
            Some(Value::Null) => _ = schema.shift_remove(name),
            Some(Value::Bool(_)) if name != "items" => {}
            Some(value) => _ = schema.insert(name.to_owned(), node(value, &at(name), depth + 1)?),
        }
    }
    Ok(())
}

/// Schemas that several branches have for one property, each once.
fn either(schemas: Vec<Value>) -> Value {
    let mut distinct: Vec<Value> = Vec::new();
    for schema in schemas {
        if !distinct.contains(&schema) {
            distinct.push(schema);
        }
    }
    if distinct.len() == 1 { distinct.remove(0) } else { json!({ "anyOf": distinct }) }
}

/// The properties of several schemas, by name and in order.
type Properties = (Vec<String>, BTreeMap<String, Vec<Value>>);

#[cfg(test)]
mod tests;
