//! Durable programs: code of any language whose calls are recorded in the journal of its job ([ADR 82](../../../docs/adr/0082-durable-code.md)).
//!
//! A program that starts again asks for the same calls as before. [`CallReplay`] decides what each of them gets: its record, in the order of
//! the records, or the permission to begin. It has neither a clock nor a journal; whoever carries out the calls has both.

mod identity;
mod outcome;
mod replay;

pub use identity::{BadIdentity, CallKind, NAME_BYTES_MAX, Numbers, check_digest, check_identity, digest, identity};
pub use outcome::{CallOutcome, CallRecord};
pub use replay::{CallEffect, CallReplay, CallRequest, Difference, Key, PastCall};

#[cfg(test)]
mod tests;
