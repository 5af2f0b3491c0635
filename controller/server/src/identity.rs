//! The callers of this program's doors, as authentication found them. Callers that act for somebody else are made by functions behind the
//! doors alone.

use std::sync::Arc;

use atlas_access::Access;
use atlas_service::Caller;
use atlas_types::{Door, Principal};

/// The caller of a request to the HTTP door, as authentication found it.
pub(crate) fn http(access: Option<Arc<Access>>) -> Caller {
    Caller::authenticated(Door::Http, access)
}

/// The caller of a request to the MCP gateway, as authentication found it.
pub(crate) fn mcp(access: Option<Arc<Access>>) -> Caller {
    Caller::authenticated(Door::Mcp, access)
}

/// A caller without a token, where none is needed: it is granted nothing.
pub(crate) fn nobody() -> Caller {
    http(Some(Arc::new(Access::new(Principal::anonymous(), Vec::new()))))
}

/// The same at the MCP gateway.
pub(crate) fn mcp_nobody() -> Caller {
    mcp(Some(Arc::new(Access::new(Principal::anonymous(), Vec::new()))))
}

/// A controller that joins or has joined.
pub(crate) fn peer() -> Caller {
    Caller::cluster(Door::Peer)
}

/// A worker that joins with a token, which is checked by its node.
pub(crate) fn worker() -> Caller {
    Caller::cluster(Door::Worker)
}

/// The program that embeds this controller.
pub(crate) fn local() -> Caller {
    Caller::anonymous(Door::Local)
}
