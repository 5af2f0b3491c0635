//! The stored formats: log entries, outcomes and snapshots as `atlas.state.v1`.
//!
//! This crate owns the bytes; `atlas-types` owns the meaning. Two rules hold everywhere:
//!
//! - Everything that can be encoded can be decoded: no check here refuses a value that the shared types allow. Bounds on a command are
//!   `apply`'s business, bounds on an entry the planner's ([`ENTRY_BYTES_MAX`], [`ENTRY_REQUESTS_MAX`]).
//! - Decoding is strict. A command, field or value that this program does not know is an error, and the
//!   replica that meets it stops; nothing is skipped. Damaged bytes are an error, never a panic.
//!
//! Encoding is deterministic: equal values have equal bytes, so that replicas can compare chains and digests.

mod chain;
mod convert;
mod entry;
mod error;
mod event;
mod job;
mod outcome;
mod proto;
mod snapshot;
mod steps;

#[cfg(test)]
mod tests;

pub use chain::chain;
pub use entry::{
    ENTRY_BYTES_MAX, ENTRY_REQUESTS_MAX, EntryEncoder, decode_entry, decode_requests, encode_entry, encode_request,
    encode_requests, request_len,
};
pub use error::{FormatError, SnapshotError};
pub use event::{decode_event, encode_event};
pub use job::{decode_job, encode_job};
pub use outcome::{decode_outcomes, encode_outcomes};
pub use snapshot::{RECORD_BYTES_MAX, decode_snapshot, digest_state, encode_snapshot};
pub use steps::{decode_steps, encode_steps};
