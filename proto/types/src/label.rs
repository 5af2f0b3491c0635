//! Bounds on labels, the free-form pairs of text that people give to jobs and nodes.

/// Most labels that a client gives to a job, or an operator to a node.
pub const LABELS_MAX: usize = 64;

/// Most bytes of the key of such a label, and of its value.
pub const LABEL_BYTES_MAX: usize = 1_024;
