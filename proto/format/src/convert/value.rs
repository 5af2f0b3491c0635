//! Values that several messages share.

use atlas_types::{Failure, FailureKind, Micros, Payload, PayloadBody, Usage, Version};

use super::{EnumField as _, digest, enum_field, required};
use crate::{FormatError, proto};

impl From<Version> for proto::Version {
    fn from(version: Version) -> Self {
        Self { major: version.major, minor: version.minor, patch: version.patch }
    }
}

impl From<proto::Version> for Version {
    fn from(version: proto::Version) -> Self {
        Self { major: version.major, minor: version.minor, patch: version.patch }
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

impl From<&Failure> for proto::Failure {
    fn from(failure: &Failure) -> Self {
        Self { kind: proto::FailureKind::from(failure.kind).into(), error: failure.error.to_string() }
    }
}

impl TryFrom<proto::Failure> for Failure {
    type Error = FormatError;

    fn try_from(failure: proto::Failure) -> Result<Self, FormatError> {
        Ok(Self { kind: FailureKind::read("failure.kind", failure.kind)?, error: failure.error.into() })
    }
}

impl From<Usage> for proto::Usage {
    fn from(usage: Usage) -> Self {
        Self { warmup_us: usage.warmup.0, execution_us: usage.execution.0, warm: usage.warm, idle: usage.idle }
    }
}

impl From<proto::Usage> for Usage {
    fn from(usage: proto::Usage) -> Self {
        Self {
            warmup: Micros(usage.warmup_us),
            execution: Micros(usage.execution_us),
            warm: usage.warm,
            idle: usage.idle,
        }
    }
}
