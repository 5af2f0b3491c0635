//! Determines the caller at a door. This is the only place in the program that creates a caller. While authentication
//! is off, only the door is known.

use atlas_service::Caller;
use atlas_types::Door;

/// The caller of a request to the HTTP door.
pub(crate) fn http() -> Caller {
    Caller::anonymous(Door::Http)
}

/// The caller of a request to the MCP gateway.
pub(crate) fn mcp() -> Caller {
    Caller::anonymous(Door::Mcp)
}

/// A controller that joins or has joined.
pub(crate) fn peer() -> Caller {
    Caller::cluster(Door::Peer)
}

/// The program that embeds this controller.
pub(crate) fn local() -> Caller {
    Caller::anonymous(Door::Local)
}
