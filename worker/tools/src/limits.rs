//! Limits of a call.

use std::time::Duration;

/// Limits of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// How long it may take.
    pub time: Duration,
    /// Bytes of its result. A larger one is an error.
    pub result_bytes: usize,
    /// Bytes that are kept of each of its streams: the last ones.
    pub stream_bytes: usize,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self { time: Duration::from_secs(120), result_bytes: 1 << 20, stream_bytes: 16 << 10 }
    }
}
