//! The outermost schema: an object with properties, and without a choice of forms. Providers refuse those there.

use serde_json::{Map, Value, json};

use super::{Properties, either, types};

/// Most references that lead to one another.
const HOPS_MAX: usize = 8;
/// Most bytes of the text about what the schema no longer says.
const TEXT_BYTES_MAX: usize = 2 << 10;

pub(super) fn flat(schema: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let root = Value::Object(schema.clone());
    let mut schema = resolved(schema, &root)?;
    let mut notes = Vec::new();
    if let Some(Value::Array(parts)) = schema.shift_remove("allOf") {
        for part in parts {
            join(&mut schema, resolved(form(part)?, &root)?, &mut notes);
        }
    }
    for name in ["anyOf", "oneOf"] {
        if let Some(Value::Array(forms)) = schema.shift_remove(name) {
            let forms: Result<Vec<_>, String> = forms.into_iter().map(|one| resolved(form(one)?, &root)).collect();
            choose(&mut schema, forms?, name == "oneOf", &mut notes)?;
        }
    }
    for name in ["not", "enum", "const"] {
        if let Some(value) = schema.shift_remove(name) {
            notes.push(format!("The arguments as a whole: {name} {value}."));
        }
    }
    match schema.get("type") {
        None => {}
        Some(_) if types::has(&schema, "object") => {}
        Some(other) => return Err(format!("its arguments are not an object but {other}")),
    }
    schema.insert("type".to_owned(), "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    if !notes.is_empty() {
        let before =
            schema.get("description").and_then(Value::as_str).map(|text| format!("{text} ")).unwrap_or_default();
        let mut text = format!("{before}{}", notes.join(" "));
        if text.len() > before.len() + TEXT_BYTES_MAX {
            text.truncate(text.floor_char_boundary(before.len() + TEXT_BYTES_MAX));
            text.push('…');
        }
        schema.insert("description".to_owned(), text.into());
    }
    Ok(schema)
}

fn form(schema: Value) -> Result<Map<String, Value>, String> {
    match schema {
        Value::Object(members) => Ok(members),
        _ => Err("its schema offers a form that is not an object".to_owned()),
    }
}

/// The schema to which a reference leads, with what stands beside the reference.
fn resolved(mut schema: Map<String, Value>, root: &Value) -> Result<Map<String, Value>, String> {
    for _ in 0..HOPS_MAX {
        let Some(Value::String(target)) = schema.shift_remove("$ref") else { return Ok(schema) };
        let pointer = target.trim_start_matches('#');
        let Some(Value::Object(found)) = root.pointer(pointer).filter(|_| !pointer.is_empty()) else {
            return Err(format!("its schema refers to {target:?}, which is not there"));
        };
        for (name, value) in found {
            schema.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    Err("its schema refers to itself".to_owned())
}

/// Adds what else must be true.
fn join(schema: &mut Map<String, Value>, part: Map<String, Value>, notes: &mut Vec<String>) {
    for (name, value) in part {
        match (name.as_str(), schema.get_mut(&name), value) {
            ("properties", Some(Value::Object(known)), Value::Object(more)) => {
                for (key, property) in more {
                    match known.get_mut(&key) {
                        Some(other) if *other != property => {
                            *other = json!({ "allOf": [other.clone(), property] });
                        }
                        Some(_) => {}
                        None => _ = known.insert(key, property),
                    }
                }
            }
            ("required", Some(Value::Array(known)), Value::Array(more)) => {
                let new: Vec<Value> = more.into_iter().filter(|name| !known.contains(name)).collect();
                known.extend(new);
            }
            ("anyOf" | "oneOf" | "allOf" | "not" | "if" | "then" | "else", _, value) => {
                notes.push(format!("Also: {}.", json!({ name: value })));
            }
            // Each part would forbid the properties of the others.
            ("additionalProperties" | "unevaluatedProperties", _, _) => _ = schema.shift_remove(&name),
            (_, None, value) => _ = schema.insert(name, value),
            _ => {}
        }
    }
}

/// Makes one form of several: all of their properties, of which those are required that all require. Words say what the forms are.
fn choose(
    schema: &mut Map<String, Value>,
    forms: Vec<Map<String, Value>>,
    only_one: bool,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    let is_object = |form: &Map<String, Value>| !form.contains_key("type") || types::has(form, "object");
    let forms: Vec<_> = forms.into_iter().filter(is_object).collect();
    if forms.is_empty() {
        return Err("its arguments are not an object".to_owned());
    }
    let (mut names, mut found): Properties = Properties::default();
    for (name, property) in forms.iter().filter_map(|form| form.get("properties")?.as_object()).flatten() {
        if !found.contains_key(name) {
            names.push(name.clone());
        }
        found.entry(name.clone()).or_default().push(property.clone());
    }
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    let mut closes = false;
    if let Value::Object(properties) = properties {
        for name in names {
            let schemas = found.remove(&name).unwrap_or_default();
            closes |= !properties.contains_key(&name);
            properties.entry(name).or_insert_with(|| either(schemas));
        }
    }
    // The outer schema would forbid what only the forms name, if it were read alone.
    if closes && schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        schema.shift_remove("additionalProperties");
    }
    let required =
        |form: &Map<String, Value>| form.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let shared: Vec<Value> = forms.first().map(&required).unwrap_or_default();
    let shared = shared.into_iter().filter(|name| forms.iter().all(|form| required(form).contains(name)));
    let mut all = required(schema);
    for name in shared {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    if !all.is_empty() {
        schema.insert("required".to_owned(), Value::Array(all));
    }
    if forms.len() > 1 {
        let how = if only_one { "exactly one" } else { "at least one" };
        let said: Vec<String> = forms.iter().enumerate().map(|(place, form)| said(place + 1, form)).collect();
        notes.push(format!("The arguments have {how} of these forms: {}.", said.join("; ")));
    }
    Ok(())
}

/// A form in words.
fn said(number: usize, form: &Map<String, Value>) -> String {
    let list = |names: Vec<&str>| names.join(", ");
    let title = ["title", "description"].iter().find_map(|name| form.get(*name)?.as_str());
    let required = form.get("required").and_then(Value::as_array);
    let required = list(required.into_iter().flatten().filter_map(Value::as_str).collect());
    let properties = form.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flatten().map(|(name, schema)| match schema.get("const") {
        Some(value) => format!("{name} = {value}"),
        None => name.clone(),
    });
    let properties = properties.collect::<Vec<_>>().join(", ");
    let mut text = format!("({number})");
    if let Some(title) = title {
        text += &format!(" {title}:");
    }
    if !properties.is_empty() {
        text += &format!(" {properties}");
    }
    if !required.is_empty() {
        text += &format!(" required: {required}");
    }
    text
}
