//! The outermost schema: an object with properties, and without a choice of forms. Providers refuse those there.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Properties, either, types};

/// Most references and parts within one another.
const DEPTH_MAX: usize = 8;
/// Most parts and forms of one schema.
const PARTS_MAX: usize = 64;
/// Most bytes of what references copy, as JSON.
const COPIES_BYTES_MAX: usize = 4 << 20;
/// Most bytes of the text about what the schema no longer says.
const TEXT_BYTES_MAX: usize = 2 << 10;

pub(super) fn flat(schema: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let root = Value::Object(schema.clone());
    let mut flattening = Flattening { root: &root, parts: 0, copied: 0, notes: Vec::new() };
    let mut schema = flattening.flat(schema, 0)?;
    let mut notes = flattening.notes;
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

/// What it takes to make one form of a schema: bounded, because references can lead to the same large schema again and again.
struct Flattening<'a> {
    root: &'a Value,
    parts: usize,
    copied: usize,
    /// What the schema no longer says.
    notes: Vec<String>,
}

impl Flattening<'_> {
    /// The schema without a reference, parts and a choice of forms.
    fn flat(&mut self, mut schema: Map<String, Value>, depth: usize) -> Result<Map<String, Value>, String> {
        if let Some(Value::String(target)) = schema.shift_remove("$ref") {
            if depth >= DEPTH_MAX {
                return Err("its schema refers to itself".to_owned());
            }
            let found = self.copy(&target)?;
            let found = self.flat(found, depth + 1)?;
            // What the reference forbids stays true if nothing stands beside it.
            let is_closed = !schema.contains_key("properties") && !schema.contains_key("additionalProperties");
            let closing = found.get("additionalProperties").filter(|_| is_closed).cloned();
            join(&mut schema, found, &mut self.notes);
            if let Some(closing) = closing {
                schema.insert("additionalProperties".to_owned(), closing);
            }
        }
        if let Some(Value::Array(parts)) = schema.shift_remove("allOf") {
            for part in parts {
                let part = self.part(part, depth)?;
                join(&mut schema, part, &mut self.notes);
            }
        }
        for name in ["anyOf", "oneOf"] {
            let Some(Value::Array(list)) = schema.shift_remove(name) else { continue };
            let mut forms = Vec::new();
            for one in list {
                let before = self.notes.len();
                let form = self.part(one, depth)?;
                for note in self.notes.iter_mut().skip(before) {
                    *note = format!("Of the form ({}): {note}", forms.len() + 1);
                }
                if !form.contains_key("type") || types::has(&form, "object") {
                    forms.push(form);
                } else {
                    self.notes.truncate(before);
                }
            }
            if !forms.is_empty() {
                choose(&mut schema, &forms, name == "oneOf", &mut self.notes);
            } else if depth == 0 {
                return Err("its arguments are not an object".to_owned());
            } else {
                // Then neither is this form of an outer choice.
                schema.insert("type".to_owned(), "null".into());
            }
        }
        Ok(schema)
    }

    fn part(&mut self, part: Value, depth: usize) -> Result<Map<String, Value>, String> {
        let Value::Object(part) = part else {
            return Err("its schema offers a form that is not an object".to_owned());
        };
        self.parts += 1;
        if self.parts > PARTS_MAX {
            return Err(format!("its schema has more than {PARTS_MAX} parts and forms"));
        }
        if depth >= DEPTH_MAX {
            return Err(format!("its schema has parts and forms more than {DEPTH_MAX} deep"));
        }
        self.flat(part, depth + 1)
    }

    /// The schema to which a reference leads.
    fn copy(&mut self, target: &str) -> Result<Map<String, Value>, String> {
        let pointer = target.trim_start_matches('#');
        // A fragment of an address may have characters of names as their codes.
        let found = self.root.pointer(pointer).or_else(|| self.root.pointer(&decoded(pointer)?));
        let found = found.filter(|_| !pointer.is_empty());
        let Some((found, members)) = found.and_then(|found| Some((found, found.as_object()?))) else {
            let shown: String = target.chars().take(256).collect();
            return Err(format!("its schema refers to {shown:?}, which is not there"));
        };
        self.copied += found.to_string().len();
        if self.copied > COPIES_BYTES_MAX {
            return Err(format!("its references copy more than {COPIES_BYTES_MAX} bytes"));
        }
        Ok(members.clone())
    }
}

/// A text whose characters stand as codes, such as `%20`. None if there is no such code, or it is no text.
fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((before, behind)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let code = behind.get(..2).filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        rest = &behind[2..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok().filter(|decoded| decoded != text)
}

/// Adds what else must be true.
fn join(schema: &mut Map<String, Value>, part: Map<String, Value>, notes: &mut Vec<String>) {
    let adds = part.get("properties").and_then(Value::as_object).is_some_and(|more| {
        let known = schema.get("properties").and_then(Value::as_object);
        more.keys().any(|key| known.is_none_or(|known| !known.contains_key(key)))
    });
    opened(schema, adds);
    for (name, value) in part {
        match (name.as_str(), schema.get_mut(&name), value) {
            ("properties", Some(Value::Object(known)), Value::Object(more)) => {
                for (key, property) in more {
                    match known.get_mut(&key) {
                        Some(other) if *other != property => both(other, property),
                        Some(_) => {}
                        None => _ = known.insert(key, property),
                    }
                }
            }
            ("required", Some(Value::Array(known)), Value::Array(more)) => add(known, more),
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

/// An outer schema would forbid what only its parts name, if it were read alone.
fn opened(schema: &mut Map<String, Value>, adds: bool) {
    for name in ["additionalProperties", "unevaluatedProperties"] {
        if adds && schema.get(name) == Some(&Value::Bool(false)) {
            schema.shift_remove(name);
        }
    }
}

/// A property that must be as both say.
fn both(one: &mut Value, other: Value) {
    match one.as_object_mut() {
        Some(members) if members.len() == 1 && members.get("allOf").is_some_and(Value::is_array) => {
            if let Some(Value::Array(all)) = members.get_mut("allOf") {
                all.push(other);
            }
        }
        _ => *one = json!({ "allOf": [one.take(), other] }),
    }
}

/// Adds the names that are not there.
fn add(known: &mut Vec<Value>, more: Vec<Value>) {
    let mut seen: BTreeSet<String> = known.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    known.extend(more.into_iter().filter(|name| name.as_str().is_some_and(|name| seen.insert(name.to_owned()))));
}

/// Makes one form of several: all of their properties, of which those are required that all require. Words say what the forms are.
fn choose(schema: &mut Map<String, Value>, forms: &[Map<String, Value>], only_one: bool, notes: &mut Vec<String>) {
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
    opened(schema, closes);
    let required = |form: &Map<String, Value>| -> BTreeSet<String> {
        let names = form.get("required").and_then(Value::as_array).into_iter().flatten();
        names.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let others: Vec<BTreeSet<String>> = forms.iter().skip(1).map(required).collect();
    let first = forms.first().and_then(|form| form.get("required")?.as_array());
    let is_shared = |name: &&Value| name.as_str().is_some_and(|name| others.iter().all(|other| other.contains(name)));
    let shared: Vec<Value> = first.into_iter().flatten().filter(is_shared).cloned().collect();
    let mut all = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    add(&mut all, shared);
    if !all.is_empty() {
        schema.insert("required".to_owned(), Value::Array(all));
    }
    if forms.len() > 1 {
        let how = if only_one { "exactly one" } else { "at least one" };
        let said: Vec<String> = forms.iter().enumerate().map(|(place, form)| said(place + 1, form)).collect();
        notes.push(format!("The arguments have {how} of these forms: {}.", said.join("; ")));
    }
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
