//! Numbers that most programs cannot read, because they are beyond the range of floats: `1e400`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::violation::member;

/// In longer texts the number is not looked for: each level is read again.
const BYTES_MAX: usize = 256 << 10;

/// Where a JSON text has a number that is out of range, as a JSON pointer; none if it has none, or is no JSON.
pub fn out_of_range(text: &str) -> Option<String> {
    // Whoever reads the text fails at the first such number. serde_json has no other name for this error.
    let is_of_range = |error: serde_json::Error| error.to_string().starts_with("number out of range");
    if text.len() > BYTES_MAX || !serde_json::from_str::<Value>(text).is_err_and(is_of_range) {
        return None;
    }
    find(text.trim_start(), "")
}

fn find(text: &str, pointer: &str) -> Option<String> {
    let inside = |name: &str, value: &RawValue| find(value.get(), &member(pointer, name));
    match text.as_bytes().first()? {
        b'{' => {
            let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(text).ok()?;
            members.into_iter().find_map(|(name, value)| inside(&name, value))
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            items.into_iter().enumerate().find_map(|(index, value)| inside(&index.to_string(), value))
        }
        b'-' | b'0'..=b'9' => serde_json::from_str::<Value>(text).is_err().then(|| pointer.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::out_of_range;

    #[test]
    fn numbers_are_named_by_their_place() {
        for (text, place) in [
            ("1e400", Some("")),
            (r#" {"a": {"b/c": [1, -1e999]}}"#, Some("/a/b~1c/1")),
            (r#"{"a": 1e300, "b": "1e400", "c": 123456789012345678901234567890}"#, None),
            ("[1e400", None),
            ("nonsense", None),
            ("1 2", None),
            ("", None),
        ] {
            assert_eq!(out_of_range(text).as_deref(), place, "{text}");
        }
    }
}
