//! Requests of callers. Doors have none: they call functions, which make the requests.

use atlas_artifacts::hash;
use atlas_types::{Command, Origin, Request};

use crate::Caller;

/// A request whose hash covers only its command, so that a repeat has the same hash.
pub fn of(caller: &Caller, command: Command) -> Request {
    let mut request = Request { origin: Origin::duty(caller.namespace.clone()), command };
    let body_hash = caller.request_id.as_ref().map_or(0, |_| hash(&atlas_format::encode_requests(&[request.clone()])));
    request.origin = Origin { body_hash, ..origin(caller) };
    request
}

/// Where a request of a caller comes from.
pub fn origin(caller: &Caller) -> Origin {
    Origin {
        namespace: caller.namespace.clone(),
        principal: caller.principal.clone(),
        door: caller.door,
        request_id: caller.request_id.clone(),
        body_hash: 0,
        trace: caller.trace,
    }
}
