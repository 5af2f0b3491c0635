//! What is known of a principal besides its name: texts by name. A binding says it of one principal, an issuer of all of its principals.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::kind::Refusal;

/// Most attributes of a principal, and most values of one.
const ITEMS_MAX: usize = 16;

/// Most bytes of a value.
const VALUE_BYTES_MAX: usize = 256;

/// Most bytes of a name.
const NAME_BYTES_MAX: usize = 63;

/// Names of what is known of every caller.
const TAKEN: [&str; 2] = ["principal", "namespace"];

/// Whether something can be known of a caller under this name: letters, digits, hyphens and low lines.
pub(crate) fn is_name(name: &str) -> bool {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    plain && (1..=NAME_BYTES_MAX).contains(&name.len())
}

/// The JSON Schema of attributes.
pub(crate) fn attributes_schema(description: &str) -> Value {
    let value = json!({ "type": "string", "minLength": 1, "maxLength": VALUE_BYTES_MAX });
    json!({
        "type": "object", "maxProperties": ITEMS_MAX, "description": description,
        "propertyNames": { "pattern": format!("^[A-Za-z0-9_-]{{1,{NAME_BYTES_MAX}}}$"), "not": { "enum": TAKEN } },
        "additionalProperties": { "type": "array", "minItems": 1, "maxItems": ITEMS_MAX, "items": value }
    })
}

/// Refuses attributes that are too many, and names that cannot be compared. The schema refuses the same at the doors.
pub(crate) fn check_attributes(attributes: &BTreeMap<String, Vec<String>>) -> Result<(), Refusal> {
    let refused = |why: String| Err(Refusal::new("spec.attributes", why));
    if attributes.len() > ITEMS_MAX {
        return refused(format!("has more than {ITEMS_MAX} members"));
    }
    for (name, values) in attributes {
        if TAKEN.contains(&name.as_str()) {
            return refused(format!("names \"{name}\", which is known of every caller"));
        }
        if !is_name(name) {
            let why = "has a name with other characters than letters, digits, - and _, or with more than";
            return refused(format!("{why} {NAME_BYTES_MAX}"));
        }
        let fits = values.iter().all(|value| (1..=VALUE_BYTES_MAX).contains(&value.len()));
        if !fits || !(1..=ITEMS_MAX).contains(&values.len()) {
            let why = format!("has no value, more than {ITEMS_MAX}, or one of more than {VALUE_BYTES_MAX} bytes");
            return refused(format!("{why} under \"{name}\""));
        }
    }
    Ok(())
}
