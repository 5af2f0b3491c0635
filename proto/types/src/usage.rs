//! What attempts measure.

use crate::Micros;

/// What an attempt measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Duration of `on_startup`; 0 in a reused slot.
    pub warmup: Micros,
    /// Duration of `execute`.
    pub execution: Micros,
    /// True when the slot was reused.
    pub warm: bool,
    /// Idle warm slots of the package on the node, after this attempt.
    pub idle: u32,
}
