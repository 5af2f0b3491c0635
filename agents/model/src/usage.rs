//! What a call used.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Tokens of one call or of several. `input` counts all tokens of the request, with those read from or written to a cache;
/// `output` all of the answer, with reasoning. Adapters convert providers that count otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    /// The part of `input` that came from the provider's cache.
    #[serde(default)]
    pub cache_read: u64,
    /// The part of `input` that was written to the provider's cache.
    #[serde(default)]
    pub cache_write: u64,
    /// The part of `output` that was reasoning.
    #[serde(default)]
    pub reasoning: u64,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}
