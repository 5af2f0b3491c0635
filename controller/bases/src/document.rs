//! Documents: a text with a source, which is its name in the base, and metadata.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_artifacts::digest_of;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Most bytes of a text.
pub(crate) const TEXT_BYTES_MAX: usize = 4 << 20;

/// Most bytes of a source.
pub(crate) const SOURCE_BYTES_MAX: usize = 1_024;

/// Most bytes of metadata as JSON.
pub(crate) const METADATA_BYTES_MAX: usize = 16 << 10;

/// Bytes of the digest that are an id.
const ID_BYTES: usize = 16;

/// A document as a segment holds it: one line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Document {
    pub(crate) source: Arc<str>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) metadata: Map<String, Value>,
    pub(crate) text: String,
}

/// Why a document is refused. The others of its request are not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("its source is empty")]
    NoSource,
    #[error("its source has more than {SOURCE_BYTES_MAX} bytes")]
    LongSource,
    #[error("its source has a control character")]
    SourceControl,
    #[error("it has no text")]
    NoText,
    #[error("its text has {0} bytes, more than {TEXT_BYTES_MAX}; split it")]
    LongText(usize),
    #[error("it is no text: it has a null character")]
    Binary,
    #[error("its metadata has more than {METADATA_BYTES_MAX} bytes")]
    LongMetadata,
    #[error("another document of the request has its source")]
    Twice,
    #[error("the base has another document with its source, which you may not read; use another source")]
    Taken,
    #[error("somebody has added a document with its source")]
    Own,
}

impl Document {
    /// Refuses a document that could not be kept or found.
    pub(crate) fn check(&self) -> Result<(), Unusable> {
        if self.source.trim().is_empty() {
            return Err(Unusable::NoSource);
        }
        if self.source.len() > SOURCE_BYTES_MAX {
            return Err(Unusable::LongSource);
        }
        if self.source.chars().any(char::is_control) {
            return Err(Unusable::SourceControl);
        }
        if self.text.len() > TEXT_BYTES_MAX {
            return Err(Unusable::LongText(self.text.len()));
        }
        if self.text.contains('\0') {
            return Err(Unusable::Binary);
        }
        if self.text.trim().is_empty() {
            return Err(Unusable::NoText);
        }
        if serde_json::to_string(&self.metadata).map_or(usize::MAX, |text| text.len()) > METADATA_BYTES_MAX {
            return Err(Unusable::LongMetadata);
        }
        Ok(())
    }

    /// What it is known by: the same source, metadata and text have the same id.
    pub(crate) fn id(&self) -> String {
        let metadata = sorted(&Value::Object(self.metadata.clone())).to_string();
        let mut whole = Vec::with_capacity(self.source.len() + metadata.len() + self.text.len() + 2);
        for part in [self.source.as_bytes(), b"\0", metadata.as_bytes(), b"\0", self.text.as_bytes()] {
            whole.extend_from_slice(part);
        }
        digest_of(&whole).hex().chars().take(2 * ID_BYTES).collect()
    }
}

/// The same value with the members of all objects by name.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<&String, Value> = members.iter().map(|(name, value)| (name, sorted(value))).collect();
            Value::Object(members.into_iter().map(|(name, value)| (name.clone(), value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn document(source: &str, text: &str, metadata: &Value) -> Document {
        let metadata = metadata.as_object().cloned().unwrap_or_default();
        Document { source: source.into(), metadata, text: text.to_owned() }
    }

    fn check(document: &Document, expected: &Expect) {
        let said = document.check().map_or_else(|error| error.to_string(), |()| "ok".to_owned());
        expected.assert_eq(&said);
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let none = json!({});
        check(&document("../../etc/passwd", "a", &none), &expect!["ok"]);
        check(&document(" ", "a", &none), &expect!["its source is empty"]);
        check(&document("a\nb", "a", &none), &expect!["its source has a control character"]);
        check(&document(&"é".repeat(513), "a", &none), &expect!["its source has more than 1024 bytes"]);
        check(&document("a", " \n", &none), &expect!["it has no text"]);
        check(&document("a", "PNG\0", &none), &expect!["it is no text: it has a null character"]);
        let long = "a".repeat(TEXT_BYTES_MAX + 1);
        check(&document("a", &long, &none), &expect!["its text has 4194305 bytes, more than 4194304; split it"]);
        let metadata = json!({"a": "b".repeat(METADATA_BYTES_MAX)});
        check(&document("a", "b", &metadata), &expect!["its metadata has more than 16384 bytes"]);
    }

    #[test]
    fn an_id_covers_all_parts_and_not_the_order_of_members() {
        let id = |source, text, metadata: Value| document(source, text, &metadata).id();
        let one = id("a", "b", json!({"x": 1, "y": 2}));
        assert_eq!(one.len(), 32);
        assert_eq!(one, id("a", "b", serde_json::from_str(r#"{"y":2,"x":1}"#).expect("JSON")));
        for other in [id("a", "c", json!({"x": 1, "y": 2})), id("ab", "", json!({})), id("a", "b", json!({}))] {
            assert_ne!(one, other);
        }
    }
}
