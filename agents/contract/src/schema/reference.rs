//! Local references: `#`, `#/$defs/x` and `#anchor`. Others are refused when the schema is compiled.

use std::collections::HashMap;

use serde_json::Value;

use crate::violation::escaped;

/// JSON pointers of the anchors in a schema, collected once because a reference may be followed many times.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    pointers: HashMap<String, String>,
}

impl Anchors {
    pub(super) fn of(schema: &Value) -> Self {
        let mut anchors = Self::default();
        anchors.gather(schema, &mut String::new());
        anchors
    }

    fn gather(&mut self, value: &Value, pointer: &mut String) {
        let mut below = |name: &str, value: &Value| {
            let len = pointer.len();
            pointer.push('/');
            pointer.push_str(&escaped(name));
            self.gather(value, pointer);
            pointer.truncate(len);
        };
        match value {
            Value::Array(items) => items.iter().enumerate().for_each(|(index, item)| below(&index.to_string(), item)),
            Value::Object(members) => {
                members.iter().for_each(|(name, member)| below(name, member));
                for keyword in ["$anchor", "$dynamicAnchor"] {
                    if let Some(name) = members.get(keyword).and_then(Value::as_str) {
                        self.pointers.entry(name.to_owned()).or_insert_with(|| pointer.clone());
                    }
                }
            }
            _ => {}
        }
    }
}

/// A schema with its anchors, which resolves references.
#[derive(Debug, Clone, Copy)]
pub(super) struct Root<'a> {
    pub(super) schema: &'a Value,
    pub(super) anchors: &'a Anchors,
}

impl<'a> Root<'a> {
    /// The target of a reference.
    pub(super) fn resolve(self, reference: &str) -> Option<&'a Value> {
        let fragment = reference.strip_prefix('#')?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.schema.pointer(&percent_decoded(fragment));
        }
        self.schema.pointer(self.anchors.pointers.get(fragment)?)
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = tail.get(..2).filter(|_| first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pointers_and_anchors_are_followed() {
        let schema = json!({"$defs": {"a b/c": {"$anchor": "here", "type": "string"}}});
        let anchors = Anchors::of(&schema);
        let root = Root { schema: &schema, anchors: &anchors };
        assert_eq!(root.resolve("#"), Some(&schema));
        let named = schema.pointer("/$defs/a b~1c");
        assert!(named.is_some());
        assert_eq!(root.resolve("#/$defs/a%20b~1c"), named);
        assert_eq!(root.resolve("#here"), named);
        for missing in ["#/nope", "#nowhere", "other.json", "http://host/x#here"] {
            assert_eq!(root.resolve(missing), None, "{missing}");
        }
    }
}
