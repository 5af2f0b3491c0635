//! Who is at a door. The one place in this program that makes a caller: as long as authentication is off, all that is known is the door.

use atlas_service::Caller;
use atlas_types::Door;

/// Whoever sends a request to the HTTP door.
pub(crate) fn http() -> Caller {
    Caller::anonymous(Door::Http)
}

/// A controller that joins or has joined.
pub(crate) fn peer() -> Caller {
    Caller::cluster(Door::Peer)
}

/// The program that has this controller inside.
pub(crate) fn local() -> Caller {
    Caller::anonymous(Door::Local)
}
