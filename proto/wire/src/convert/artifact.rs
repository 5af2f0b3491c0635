//! Payloads by value or by digest.

use atlas_types::{Digest, INLINE_BYTES_MAX, Payload, PayloadBody};
use bytes::Bytes;

use super::{ConvertError, bounded, fixed, required};
use crate::proto::worker::v1 as pb;

impl From<Payload> for pb::Payload {
    fn from(payload: Payload) -> Self {
        let body = match payload.body {
            PayloadBody::Inline(bytes) => pb::payload::Body::Inline(Bytes::from_owner(bytes)),
            PayloadBody::Artifact { digest, size_bytes } => {
                pb::payload::Body::Artifact(pb::Artifact { digest: digest_out(digest), size_bytes })
            }
        };
        Self { key_id: payload.key_id, body: Some(body) }
    }
}

impl TryFrom<pb::Payload> for Payload {
    type Error = ConvertError;

    fn try_from(payload: pb::Payload) -> Result<Self, ConvertError> {
        let body = match required("payload.body", payload.body)? {
            pb::payload::Body::Inline(bytes) => {
                bounded("payload.inline", bytes.len(), INLINE_BYTES_MAX)?;
                PayloadBody::Inline(bytes.as_ref().into())
            }
            pb::payload::Body::Artifact(artifact) => PayloadBody::Artifact {
                digest: digest_in("artifact.digest", &artifact.digest)?,
                size_bytes: artifact.size_bytes,
            },
        };
        Ok(Self { key_id: payload.key_id, body })
    }
}

/// A digest as its 32 bytes.
pub fn digest_out(digest: Digest) -> Bytes {
    Bytes::copy_from_slice(&digest.0)
}

/// A digest of exactly 32 bytes; `field` names it in the error.
pub fn digest_in(field: &'static str, bytes: &[u8]) -> Result<Digest, ConvertError> {
    fixed(field, bytes).map(Digest)
}
