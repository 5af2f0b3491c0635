//! What an attempt adds to its job's metadata: token counts, the model's name (spec §7.1, step 14), and the hardware that it held
//! (step 10).

use std::sync::Arc;

use atlas_types::Allocation;
use atlas_wire::limits::METADATA_BYTES_MAX;
use serde_json::{Map, Value, json};

/// What is captured of the agent's own measurements, and under which key of the job.
const CAPTURED: [(&str, &str); 4] = [
    ("input_tokens", "_trace_input_tokens"),
    ("output_tokens", "_trace_output_tokens"),
    ("model", "_trace_model"),
    // The type of an exception whose text means nothing alone, as `'missing'` of a KeyError.
    ("_error_type", "_error_type"),
];

/// Most characters of a text that is captured.
const TEXT_CHARS_MAX: usize = 256;

/// The job's metadata with what the attempt added; none if it added nothing, or more than fits. `held` is told where an operator
/// declared the hardware, `limits` where the contract states some.
pub(crate) fn merged(
    metadata: &[u8],
    measured: &Map<String, Value>,
    held: Option<&Allocation>,
    limits: Option<String>,
) -> Option<Arc<[u8]>> {
    let captured = CAPTURED.iter().filter_map(|&(from, to)| Some((to, bounded(measured.get(from)?))));
    let held = held.map(|held| ("_hardware_allocation", hardware(held)));
    let limits = limits.map(|limits| ("_limits", Value::String(limits)));
    let added: Vec<_> = captured.chain(held).chain(limits).collect();
    if added.is_empty() {
        return None;
    }
    let mut merged: Map<String, Value> = serde_json::from_slice(metadata).unwrap_or_default();
    merged.extend(added.into_iter().map(|(key, value)| (key.to_owned(), value)));
    let bytes = serde_json::to_vec(&merged).ok()?;
    (bytes.len() <= METADATA_BYTES_MAX).then(|| bytes.into())
}

fn hardware(held: &Allocation) -> Value {
    let devices: Vec<u32> = held.gpus.iter().map(|share| share.index).collect();
    json!({"gpu_devices": devices, "memory_gb": held.memory_bytes >> 30, "cpu_cores": held.cores})
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
    use super::*;

    #[test]
    fn token_counts_are_added_and_nothing_else() {
        let measured = json!({"input_tokens": 3, "note": "x"}).as_object().cloned().unwrap_or_default();
        let added = merged(br#"{"a":1}"#, &measured, None, None);
        assert_eq!(added.as_deref(), Some(&br#"{"a":1,"_trace_input_tokens":3}"#[..]));
        assert_eq!(merged(b"{}", &Map::new(), None, None), None);
    }

    #[test]
    fn declared_hardware_is_told() {
        let held = Allocation { cores: 1, memory_bytes: 1 << 30, gpus: Vec::new() };
        let added = merged(b"{}", &Map::new(), Some(&held), None);
        let expected = br#"{"_hardware_allocation":{"gpu_devices":[],"memory_gb":1,"cpu_cores":1}}"#;
        assert_eq!(added.as_deref(), Some(&expected[..]));
    }
}
