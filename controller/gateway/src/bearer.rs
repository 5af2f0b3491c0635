//! The credential of a request, which goes on to the MCP servers of the agent that get it.

use atlas_types::SecretText;
use rmcp::RoleServer;
use rmcp::service::RequestContext;

/// The `Authorization` header of the HTTP request of a call, if it is a bearer.
pub(crate) fn inbound(context: &RequestContext<RoleServer>) -> Option<SecretText> {
    let parts = context.extensions.get::<http::request::Parts>()?;
    let value = parts.headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty();
    is_bearer.then(|| SecretText::new(value))
}
