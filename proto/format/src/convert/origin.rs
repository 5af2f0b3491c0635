//! Where a command came from.

use atlas_types::{Door, Origin, TraceContext};

use super::enum_field;
use super::table::table;
use crate::proto;

enum_field!(Door, proto::Door, {
    Http = Http,
    Worker = Worker,
    Duty = Duty,
    Peer = Peer,
    Mcp = Mcp,
    Local = Local,
});

table! {
    "trace": TraceContext = TraceContext {
        trace_id = trace_id,
        span_id = span_id,
        flags = flags,
    }
}

table! {
    "origin": Origin = Origin {
        namespace = namespace,
        principal = principal,
        door = door,
        request_id = request_id,
        body_hash = body_hash,
        trace = trace,
    }
}
