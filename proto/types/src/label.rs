//! Bounds on labels, the free-form pairs of text that people give to jobs and nodes.

use std::collections::BTreeMap;

/// Most labels that a client gives to a job, or an operator to a node.
pub const LABELS_MAX: usize = 64;

/// Most bytes of the key of such a label, and of its value.
pub const LABEL_BYTES_MAX: usize = 1_024;

/// Bytes of labels, keys and values.
pub fn label_bytes(labels: &BTreeMap<String, String>) -> u64 {
    labels.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() as u64
}
