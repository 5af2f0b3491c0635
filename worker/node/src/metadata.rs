//! Metadata that an attempt adds to its job: token counts, the model's name, and the hardware that it held
//! (compatibility §7.1).

use std::sync::Arc;

use atlas_types::{Allocation, CALLED_FROM_METADATA, KEPT_METADATA, METADATA_OURS, NAMED_METADATA};
use atlas_wire::limits::METADATA_BYTES_MAX;
use serde_json::{Map, Value, json};

/// The captured members of the agent's measurements, and their names in the job's metadata.
const CAPTURED: [(&str, &str); 9] = [
    ("input_tokens", "_trace_input_tokens"),
    ("output_tokens", "_trace_output_tokens"),
    ("model", "_trace_model"),
    // Whether the counts above are estimates.
    ("usage", USAGE),
    // The type of an exception whose text alone is unclear, such as `'missing'` of a KeyError.
    ("_error_type", "_error_type"),
    // The reason of a failure whose text has no place for it.
    ("_error_why", "_error_why"),
    ("_error_code", "_error_code"),
    // Why the loop of a model was stopped.
    ("_halted", "_halted"),
    // The kind of a failed model call.
    ("_error_kind", "_error_kind"),
];

/// Present where tokens are counted that no provider reported.
const USAGE: &str = "_trace_usage";

/// The most characters of a captured text.
const TEXT_CHARS_MAX: usize = 256;

/// The metadata that an attempt adds.
#[derive(Debug, Default)]
pub(crate) struct Added<'a> {
    /// The agent's measurements, of which some members are captured.
    pub(crate) measured: Map<String, Value>,
    /// The held hardware, if an operator declared the node's hardware.
    pub(crate) held: Option<&'a Allocation>,
    /// The enforced limits of the contract. None if the contract states none.
    pub(crate) limits: Option<String>,
    /// How its processes were confined. None if they had the rights of the worker.
    pub(crate) sandbox: Option<String>,
    /// The places where the output breaks its schema.
    pub(crate) error_at: Option<String>,
}

/// The job's metadata with the additions of the attempt. None if nothing changes or the result would be too large.
pub(crate) fn merged(metadata: &[u8], added: &Added<'_>) -> Option<Arc<[u8]>> {
    let before: Map<String, Value> = serde_json::from_slice(metadata).unwrap_or_default();
    let mut merged = before.clone();
    // A retry has the metadata that attempts of the previous job added. They are removed.
    let is_of_job = |name: &str| [CALLED_FROM_METADATA, NAMED_METADATA].contains(&name);
    let is_of_attempts = |name: &str| METADATA_OURS.contains(&name) && !is_of_job(name) || name == USAGE;
    merged.retain(|name, _| !is_of_attempts(name));
    let captured = CAPTURED.iter().filter_map(|&(from, to)| Some((to, bounded(added.measured.get(from)?))));
    let held = added.held.map(|held| ("_hardware_allocation", hardware(held)));
    let limits = added.limits.as_ref().map(|limits| ("_limits", limits.as_str().into()));
    let sandbox = added.sandbox.as_ref().map(|sandbox| ("_sandbox", sandbox.as_str().into()));
    let error_at = added.error_at.as_ref().map(|at| ("_error_at", bounded(&at.as_str().into())));
    // These two are bounded where they are made.
    let models = added.measured.get("_models").map(|models| ("_models", models.clone()));
    let kept = added.measured.get(KEPT_METADATA).map(|kept| (KEPT_METADATA, kept.clone()));
    let added = captured.chain(held).chain(limits).chain(sandbox).chain(error_at).chain(models).chain(kept);
    merged.extend(added.map(|(key, value)| (key.to_owned(), value)));
    if merged == before {
        return None;
    }
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
        let added = merged(br#"{"a":1}"#, &Added { measured, ..Added::default() });
        assert_eq!(added.as_deref(), Some(&br#"{"a":1,"_trace_input_tokens":3}"#[..]));
        assert_eq!(merged(b"{}", &Added::default()), None);
    }

    #[test]
    fn declared_hardware_is_told() {
        let held = Allocation { cores: 1, memory_bytes: 1 << 30, ..Allocation::default() };
        let added = merged(b"{}", &Added { held: Some(&held), ..Added::default() });
        let expected = br#"{"_hardware_allocation":{"gpu_devices":[],"memory_gb":1,"cpu_cores":1}}"#;
        assert_eq!(added.as_deref(), Some(&expected[..]));
    }

    #[test]
    fn a_retry_does_not_keep_what_was_wrong_before() {
        let before =
            br#"{"team":"a","_called_from":"b","_named":{},"_error_at":"/a: type","_limits":"cpu not enforced"}"#;
        let left = br#"{"team":"a","_called_from":"b","_named":{}}"#;
        assert_eq!(merged(before, &Added::default()).as_deref(), Some(&left[..]));
        let limits = Some("cpu not enforced".to_owned());
        let same = br#"{"team":"a","_limits":"cpu not enforced"}"#;
        assert_eq!(merged(same, &Added { limits, ..Added::default() }), None);
    }
}
