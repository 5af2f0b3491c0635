//! The keyword `type`.

use serde_json::{Map, Value, json};

/// Types as JSON Schema writes them.
const KNOWN: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// A word for a type. None if it means any value. The error is the word.
fn word(said: &str) -> Result<Option<(&'static str, Option<&'static str>)>, String> {
    let lower = said.trim().to_ascii_lowercase();
    if let Some(known) = KNOWN.into_iter().find(|known| *known == lower) {
        return Ok(Some((known, None)));
    }
    let word = match lower.as_str() {
        "any" | "mixed" | "" => return Ok(None),
        "int" | "int32" | "int64" | "long" | "short" | "uint" | "bigint" => ("integer", None),
        "float" | "double" | "decimal" | "real" => ("number", None),
        "str" | "text" | "char" | "varchar" => ("string", None),
        "bool" => ("boolean", None),
        "dict" | "map" | "struct" | "record" | "hash" => ("object", None),
        "list" | "tuple" | "set" | "sequence" => ("array", None),
        "none" | "nil" | "undefined" => ("null", None),
        "date" => ("string", Some("date")),
        "time" => ("string", Some("time")),
        "datetime" | "date-time" | "timestamp" => ("string", Some("date-time")),
        "uuid" => ("string", Some("uuid")),
        "uri" | "url" => ("string", Some("uri")),
        "email" => ("string", Some("email")),
        _ => return Err(format!("has the unknown type {:?}", said.chars().take(64).collect::<String>())),
    };
    Ok(Some(word))
}

/// Writes the types of a schema as the words of JSON Schema. `nullable`, which is OpenAPI's, becomes a type, or a choice where there is none.
pub(super) fn tidy(schema: &mut Map<String, Value>) -> Result<(), String> {
    let is_nullable = schema.shift_remove("nullable") == Some(Value::Bool(true));
    let said = match schema.get("type") {
        None | Some(Value::Null) => {
            schema.shift_remove("type");
            if is_nullable {
                allow_null(schema);
            }
            return Ok(());
        }
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(several)) => {
            let words = several.iter().map(|word| match word {
                Value::String(word) => Ok(word.clone()),
                Value::Null => Ok("null".to_owned()),
                _ => Err("has a \"type\" that is not a word".to_owned()),
            });
            words.collect::<Result<_, _>>()?
        }
        Some(_) => return Err("has a \"type\" that is not a word".to_owned()),
    };
    let mut types: Vec<&str> = Vec::new();
    for said in &said {
        let Some((word, format)) = word(said)? else {
            schema.shift_remove("type");
            return Ok(());
        };
        if let Some(format) = format {
            schema.entry("format").or_insert_with(|| format.into());
        }
        if !types.contains(&word) {
            types.push(word);
        }
    }
    if is_nullable && !types.contains(&"null") {
        types.push("null");
    }
    match types.as_slice() {
        [] => _ = schema.shift_remove("type"),
        [one] => _ = schema.insert("type".to_owned(), (*one).into()),
        several => _ = schema.insert("type".to_owned(), json!(several)),
    }
    Ok(())
}

/// Allows `null` as well as what a schema without a type describes.
fn allow_null(schema: &mut Map<String, Value>) {
    const RULES: [&str; 6] = ["$ref", "allOf", "anyOf", "oneOf", "enum", "const"];
    let rules: Vec<&str> = RULES.into_iter().filter(|name| schema.contains_key(*name)).collect();
    let nothing = json!({"type": "null"});
    match (rules.as_slice(), schema.get_mut("anyOf")) {
        // Nothing keeps it from being null.
        ([], _) => {}
        (["anyOf"], Some(Value::Array(choices))) => {
            if !choices.contains(&nothing) {
                choices.push(nothing);
            }
        }
        _ => {
            let mut described = Map::new();
            for name in rules {
                described.extend(schema.shift_remove(name).map(|rule| (name.to_owned(), rule)));
            }
            schema.insert("anyOf".to_owned(), json!([described, nothing]));
        }
    }
}

/// Whether a schema names this type.
pub(super) fn has(schema: &Map<String, Value>, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == wanted,
        Some(Value::Array(several)) => several.iter().any(|one| one == wanted),
        _ => false,
    }
}
