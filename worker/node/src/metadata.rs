//! What an attempt adds to its job's metadata: token counts and the model's name (spec §7.1, step 14).

use std::sync::Arc;

use atlas_wire::limits::METADATA_BYTES_MAX;
use serde_json::{Map, Value};

/// What the agent may write into the job's metadata; everything else that it measured stays with the slot.
const CAPTURED: [&str; 3] = ["input_tokens", "output_tokens", "model"];

/// Most characters of a text that is captured.
const TEXT_CHARS_MAX: usize = 256;

/// The job's metadata with what the attempt added; none if it added nothing, or more than fits.
pub(crate) fn merged(metadata: &[u8], added: &Map<String, Value>) -> Option<Arc<[u8]>> {
    let added: Vec<_> = CAPTURED.iter().filter_map(|&key| added.get_key_value(key)).collect();
    if added.is_empty() {
        return None;
    }
    let mut merged: Map<String, Value> = serde_json::from_slice(metadata).unwrap_or_default();
    merged.extend(added.into_iter().map(|(key, value)| (key.clone(), bounded(value))));
    let bytes = serde_json::to_vec(&merged).ok()?;
    (bytes.len() <= METADATA_BYTES_MAX).then(|| bytes.into())
}

fn bounded(value: &Value) -> Value {
    match value {
        Value::String(text) => text.chars().take(TEXT_CHARS_MAX).collect::<String>().into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::Array(_) | Value::Object(_) => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn token_counts_are_added_and_nothing_else() {
        let added = json!({"input_tokens": 3, "note": "x"}).as_object().cloned().unwrap_or_default();
        assert_eq!(merged(br#"{"a":1}"#, &added).as_deref(), Some(&br#"{"a":1,"input_tokens":3}"#[..]));
        assert_eq!(merged(b"{}", &Map::new()), None);
    }
}
