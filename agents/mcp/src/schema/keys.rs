//! Names of arguments. Providers take letters, digits, `_`, `.` and `-`, 64 at most; servers also have names such as `uids[]`. Each other
//! character is written as `_xHEX_`, which the way back needs no schema for.

use serde_json::{Map, Value, json};

/// Longest name.
const LENGTH_MAX: usize = 64;

/// The schema with names that every provider takes.
pub(super) fn legal(mut schema: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return Ok(schema) };
    let mut renamed = Map::new();
    for (name, mut property) in std::mem::take(properties) {
        let legal = encoded(&name);
        if legal.is_empty() || legal.len() > LENGTH_MAX {
            let shown: String = name.chars().take(LENGTH_MAX).collect();
            return Err(format!("it has an argument whose name no provider takes: {shown:?}"));
        }
        if legal != name
            && let Value::Object(members) = &mut property
        {
            let before = members.get("description").and_then(Value::as_str).map(|text| format!("{text} "));
            let text = format!("{}The server calls it {name}.", before.unwrap_or_default());
            members.insert("description".to_owned(), text.into());
        }
        renamed.insert(legal, property);
    }
    *properties = renamed;
    if let Some(Value::Array(names)) = schema.get_mut("required") {
        for name in names {
            if let Some(legal) = name.as_str().map(encoded) {
                *name = json!(legal);
            }
        }
    }
    Ok(schema)
}

/// The arguments of a call with the names that the server knows.
pub fn for_server(arguments: Map<String, Value>) -> Map<String, Value> {
    arguments.into_iter().map(|(name, value)| (decoded(&name).unwrap_or(name), value)).collect()
}

fn is_legal(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '-')
}

fn encoded(name: &str) -> String {
    let mut text = String::new();
    for (at, char) in name.char_indices() {
        // What looks like an encoded character must not be read back as one.
        if is_legal(char) && (char != '_' || escape(&name[at..]).is_none()) {
            text.push(char);
        } else {
            text += &format!("_x{:x}_", u32::from(char));
        }
    }
    text
}

/// The name that was written so. None if it is no other one.
fn decoded(name: &str) -> Option<String> {
    let (mut text, mut rest) = (String::new(), name);
    while let Some(char) = rest.chars().next() {
        let (read, length) = escape(rest).unwrap_or((char, char.len_utf8()));
        text.push(read);
        rest = &rest[length..];
    }
    (text != name && encoded(&text) == name).then_some(text)
}

/// The encoded character at the beginning, and its length.
fn escape(text: &str) -> Option<(char, usize)> {
    let hex = text.strip_prefix("_x")?.split('_').next()?;
    let is_hex = (1..=6).contains(&hex.len()) && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let length = "_x".len() + hex.len() + 1;
    let is_closed = text.as_bytes().get(length - 1) == Some(&b'_');
    let char = char::from_u32(u32::from_str_radix(hex, 16).ok()?)?;
    (is_hex && is_closed).then_some((char, length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_written_with_the_characters_that_all_take() {
        assert_eq!(encoded("uids[]"), "uids_x5b__x5d_");
        assert_eq!(encoded("a_b.c-1"), "a_b.c-1");
        assert_eq!(encoded("größe"), "gr_xf6__xdf_e");
        assert_eq!(encoded("_x5b_"), "_x5f_x5b_");
        assert_eq!(decoded("uids_x5b__x5d_").as_deref(), Some("uids[]"));
        // Written by a model, and not what a name becomes.
        assert_eq!((decoded("_x41_"), decoded("_x5B_"), decoded("_x5b")), (None, None, None));
    }

    proptest! {
        #[test]
        fn the_way_back_is_exact(name in ".{0,12}", tail in "(_x[0-9a-f]{1,3}_){0,2}") {
            let name = format!("{name}{tail}");
            let legal = encoded(&name);
            prop_assert!(legal.chars().all(is_legal));
            prop_assert_eq!(decoded(&legal).unwrap_or(legal), name);
        }
    }
}
