//! Values that several messages share.

use atlas_types::{Failure, FailureKind, Payload, PayloadBody, Usage, Version};

use super::table::{message, table};
use super::{digest, enum_field, required};
use crate::{FormatError, proto};

table! {
    "version": Version = Version {
        major = major,
        minor = minor,
        patch = patch,
    }
}

impl From<&Payload> for proto::Payload {
    fn from(payload: &Payload) -> Self {
        let body = match &payload.body {
            PayloadBody::Inline(bytes) => proto::payload::Body::Inline(bytes.to_vec()),
            PayloadBody::Artifact { digest, size_bytes } => {
                proto::payload::Body::Artifact(proto::Artifact { digest: digest.0.to_vec(), size_bytes: *size_bytes })
            }
        };
        Self { key_id: payload.key_id, body: Some(body) }
    }
}

impl TryFrom<proto::Payload> for Payload {
    type Error = FormatError;

    fn try_from(payload: proto::Payload) -> Result<Self, FormatError> {
        let body = match required("payload.body", payload.body)? {
            proto::payload::Body::Inline(bytes) => PayloadBody::Inline(bytes.into()),
            proto::payload::Body::Artifact(artifact) => PayloadBody::Artifact {
                digest: digest("artifact.digest", &artifact.digest)?,
                size_bytes: artifact.size_bytes,
            },
        };
        Ok(Self { key_id: payload.key_id, body })
    }
}

message!(Payload = Payload);

enum_field!(FailureKind, proto::FailureKind, {
    Agent = Agent,
    NoAgent = NoAgent,
    InputInvalid = InputInvalid,
    OutputInvalid = OutputInvalid,
    Startup = Startup,
    Timeout = Timeout,
    QueueTimeout = QueueTimeout,
    Unsatisfiable = Unsatisfiable,
    Rejected = Rejected,
    Dependency = Dependency,
    LeaseLost = LeaseLost,
    Internal = Internal,
});

table! {
    "failure": Failure = Failure {
        kind = kind,
        error = error,
    }
}

table! {
    "usage": Usage = Usage {
        warmup = warmup_us,
        execution = execution_us,
        warm = warm,
        idle = idle,
    }
}
