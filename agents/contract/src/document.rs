//! A document that describes one object under a key, such as `agent`. The rules see it as JSON, with null for values
//! that JSON cannot represent.

use serde_json::{Value, json};

use crate::python;
use crate::violation::Violation;
use crate::yaml::{Document, Foreign};

/// A document whose contents are under a key.
#[derive(Debug)]
pub(crate) struct Wrapped {
    /// The document, with its contents under the key.
    pub(crate) value: Value,
    /// The values that [`Self::value`] has as null. In schemas, which may contain dates as plain data, dates are text.
    pub(crate) foreign: Vec<(String, Foreign)>,
}

impl Wrapped {
    /// Moves the members under the key if the document has a `name` instead of the key. A document that is not a
    /// mapping is refused; the error is the Python name of its type.
    pub(crate) fn new(document: Document, key: &str) -> Result<Self, &'static str> {
        let Document { mut value, mut foreign } = document;
        let Some(members) = value.as_object() else {
            return Err(type_name(&value, foreign.first().map(|(_, found)| found)));
        };
        if !members.contains_key(key) && members.contains_key("name") {
            value = json!({ key: value });
            for (pointer, _) in &mut foreign {
                pointer.insert_str(0, &format!("/{key}"));
            }
        }
        let schemas = ["input", "output"].map(|side| format!("/{key}/{side}/schema/"));
        foreign.retain(|(pointer, _)| !schemas.iter().any(|schema| pointer.starts_with(schema)));
        for (pointer, _) in &foreign {
            if let Some(found) = value.pointer_mut(pointer) {
                *found = Value::Null;
            }
        }
        Ok(Self { value, foreign })
    }

    /// Names the actual value in the message of a violation for which the rules saw null.
    pub(crate) fn name_foreign(&self, violation: &mut Violation) {
        if let Some((_, found)) = self.foreign.iter().find(|(pointer, _)| *pointer == violation.pointer)
            && let Some(rest) = violation.message.strip_prefix("None")
        {
            violation.message = format!("{}{rest}", told(found));
        }
    }
}

/// Describes a value that JSON cannot represent.
pub(crate) fn told(found: &Foreign) -> String {
    match found {
        Foreign::Date(iso) => format!("the date {iso} (quote it to have text)"),
        Foreign::NonFinite(text) => text.clone(),
        Foreign::Tagged(tag) => format!("a {tag} value"),
    }
}

/// The Python name of a value's type; `foreign` is the value if JSON cannot represent it.
fn type_name(value: &Value, foreign: Option<&Foreign>) -> &'static str {
    match (foreign, value) {
        (Some(Foreign::Date(iso)), Value::String(_)) if iso.contains('T') => "datetime",
        (Some(Foreign::Date(_)), Value::String(_)) => "date",
        (Some(Foreign::NonFinite(_)), Value::Null) => "float",
        (Some(Foreign::Tagged("!!binary")), Value::Null) => "bytes",
        (Some(Foreign::Tagged(tag)), Value::Null) => tag.trim_start_matches('!'),
        _ => python::type_name(value),
    }
}
