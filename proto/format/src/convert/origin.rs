//! Where a command came from.

use atlas_types::{Door, Namespace, Origin, Principal, RequestId, TraceContext};

use super::{EnumField as _, enum_field, fixed, name};
use crate::{FormatError, proto};

enum_field!(Door, proto::Door, {
    Http = Http,
    Worker = Worker,
    Duty = Duty,
    Peer = Peer,
    Mcp = Mcp,
    Local = Local,
});

impl From<TraceContext> for proto::TraceContext {
    fn from(trace: TraceContext) -> Self {
        Self { trace_id: trace.trace_id.to_be_bytes().to_vec(), span_id: trace.span_id, flags: trace.flags.into() }
    }
}

impl TryFrom<proto::TraceContext> for TraceContext {
    type Error = FormatError;

    fn try_from(trace: proto::TraceContext) -> Result<Self, FormatError> {
        let wrong = |_| FormatError::Value { field: "trace.flags", found: trace.flags.into() };
        Ok(Self {
            trace_id: u128::from_be_bytes(fixed("trace.trace_id", &trace.trace_id)?),
            span_id: trace.span_id,
            flags: u8::try_from(trace.flags).map_err(wrong)?,
        })
    }
}

impl From<&Origin> for proto::Origin {
    fn from(origin: &Origin) -> Self {
        Self {
            namespace: origin.namespace.to_string(),
            principal: origin.principal.to_string(),
            door: proto::Door::from(origin.door).into(),
            request_id: origin.request_id.as_ref().map(RequestId::to_string),
            body_hash: origin.body_hash,
            trace: origin.trace.map(Into::into),
        }
    }
}

impl TryFrom<proto::Origin> for Origin {
    type Error = FormatError;

    fn try_from(origin: proto::Origin) -> Result<Self, FormatError> {
        Ok(Self {
            namespace: name("origin.namespace", &origin.namespace, Namespace::new)?,
            principal: name("origin.principal", &origin.principal, Principal::new)?,
            door: Door::read("origin.door", origin.door)?,
            request_id: request_id("origin.request_id", origin.request_id.as_deref())?,
            body_hash: origin.body_hash,
            trace: origin.trace.map(TraceContext::try_from).transpose()?,
        })
    }
}

/// A request id, if there is one.
pub(super) fn request_id(field: &'static str, text: Option<&str>) -> Result<Option<RequestId>, FormatError> {
    text.map(|text| name(field, text, RequestId::new)).transpose()
}
