//! Inputs, outputs and contracts: small ones are inline, large ones are artifacts named by digest (ADR 9).

use std::fmt;
use std::sync::Arc;

use crate::Digest;

/// Most bytes of a payload that is kept inline in the log and the state.
pub const INLINE_BYTES_MAX: usize = 64 * 1024;

/// JSON text, by value or by digest.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload {
    /// The key that the bytes are sealed with; 0 is plain text.
    pub key_id: u32,
    /// The bytes, or where they are.
    pub body: PayloadBody,
}

/// Where the bytes of a payload are.
#[derive(Clone, PartialEq, Eq)]
pub enum PayloadBody {
    /// At most [`INLINE_BYTES_MAX`] bytes.
    Inline(Arc<[u8]>),
    /// In the artifact store.
    Artifact {
        /// Names the bytes.
        digest: Digest,
        /// How many there are.
        size_bytes: u64,
    },
}

impl Payload {
    /// A plain inline payload. The caller keeps to [`INLINE_BYTES_MAX`]; `apply` refuses a longer one.
    pub fn inline(bytes: &[u8]) -> Self {
        Self { key_id: 0, body: PayloadBody::Inline(bytes.into()) }
    }

    /// How many bytes it has, wherever they are.
    pub fn bytes(&self) -> u64 {
        match &self.body {
            PayloadBody::Inline(bytes) => bytes.len() as u64,
            PayloadBody::Artifact { size_bytes, .. } => *size_bytes,
        }
    }

    /// Bytes this payload takes in the log and the state.
    pub fn inline_bytes(&self) -> u64 {
        match &self.body {
            PayloadBody::Inline(bytes) => bytes.len() as u64,
            PayloadBody::Artifact { .. } => 0,
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.body {
            PayloadBody::Inline(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
            PayloadBody::Artifact { digest, size_bytes } => write!(f, "{digest:?} ({size_bytes} B)"),
        }
    }
}

impl fmt::Debug for PayloadBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Payload { key_id: 0, body: self.clone() }.fmt(f)
    }
}
