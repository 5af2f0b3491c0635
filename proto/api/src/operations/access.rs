//! Who may do what.

use atlas_access::Right;

use super::operation::{Body, Content, Operation};
use super::parts::{BODY, READ, WRITE, created, get, in_cluster, ok, post};
use crate::catalogue::{OBJECT_CHANGED, OBJECT_REFUSED, UNAUTHENTICATED, UNKNOWN_OBJECT};
use crate::types::{AccessToken, AccessTokenRequest, ProtectedResource, Whoami};

operation_ids! {
    /// Who may do what.
    Access {
        Whoami = "whoami",
        McpResource = "mcpResource",
        McpResourceOfAgent = "mcpResourceOfAgent",
        CreateToken = "createToken",
    }
}

pub(super) const OPERATIONS: &[Operation] = &[
    get(Access::Whoami.id(), in_cluster(Right::Public), "/api/auth/whoami", "Who sends the request, and what this principal is granted.")
        .answers(&[ok("the principal", &[Content::json::<Whoami>()])])
        .refuses(&[READ, &[UNAUTHENTICATED]]),
    get(
        Access::McpResource.id(),
        in_cluster(Right::Public),
        "/.well-known/oauth-protected-resource/mcp",
        "Which issuers give tokens for the MCP server of the platform (RFC 9728).",
    )
    .answers(&[ok("the resource", &[Content::json::<ProtectedResource>()])])
    .refuses(&[READ, &[UNKNOWN_OBJECT]]),
    get(
        Access::McpResourceOfAgent.id(),
        in_cluster(Right::Public),
        "/.well-known/oauth-protected-resource/agents/{name}/mcp",
        "Which issuers give tokens for the MCP server of an agent (RFC 9728).",
    )
    .answers(&[ok("the resource", &[Content::json::<ProtectedResource>()])])
    .refuses(&[READ, &[UNKNOWN_OBJECT]]),
    post(
        Access::CreateToken.id(),
        in_cluster(Right::AccessManage),
        "/api/auth/tokens",
        "Makes a token. Only its hash is stored: everything else about it is the object of the kind `token`, and deleting that revokes it.",
    )
    .body(Body::json::<AccessTokenRequest>())
    .answers(&[created("the token, shown this once", &[Content::json::<AccessToken>()])])
    .refuses(&[WRITE, BODY, &[OBJECT_CHANGED, OBJECT_REFUSED]]),
];
