//! What a message says about its caller, and what its caller may do.

use atlas_api::OperationId;
use atlas_service::{Caller, Service};
use atlas_types::TraceContext;
use rmcp::model::ProtocolVersion;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use crate::owners::OwnSession;
use crate::view::error_text;

/// The protocol's versions that are served.
pub(crate) const VERSIONS: &[ProtocolVersion] = &[
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];

/// The caller, which the door put into the HTTP request, with the trace of the message.
pub(crate) fn caller(context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
    let parts = context.extensions.get::<http::request::Parts>();
    let caller = parts.and_then(|parts| parts.extensions.get::<Caller>());
    let caller = caller.cloned().ok_or_else(|| ErrorData::internal_error("the request has no caller", None))?;
    Ok(traced(caller, context.meta.get_traceparent()))
}

/// The caller with the trace of a message, as `traceparent` in its `_meta` has it. It goes before that of the HTTP request, which may be one of
/// a proxy. A malformed one is ignored.
pub(crate) fn traced(caller: Caller, traceparent: Option<&str>) -> Caller {
    let trace = traceparent.and_then(TraceContext::read).or(caller.trace);
    caller.with_trace(trace)
}

/// The id of the caller's session; none in the versions of the protocol without sessions.
pub(crate) fn session(context: &RequestContext<RoleServer>) -> Option<&str> {
    let OwnSession(id) = context.extensions.get::<http::request::Parts>()?.extensions.get()?;
    Some(id)
}

/// Refuses a caller that may not use the operation for which a method stands.
pub(crate) async fn allowed(
    service: &Service,
    caller: &Caller,
    operation: OperationId,
    method: &str,
) -> Result<(), ErrorData> {
    let admitted = service.admit(caller, operation, &format!("mcp/{method}")).await;
    admitted.map_err(|error| ErrorData::invalid_request(error_text(&error), None))
}
