//! Records of who did what ([ADR 44](../../../docs/adr/0044-audit.md)): their form, their chain, and its verification.
//!
//! A record is one line of JSON. It has a number, the hash of the line before, and as its last member the SHA-256 of its own bytes
//! without that member. So whoever has the lines can check with this crate, or with any program for SHA-256, that none was changed,
//! removed or inserted between two others. The crate reads no clock and no file: a controller writes the lines, and `atlasctl`
//! verifies them without a cluster.

mod chain;
mod filter;
mod receipt;
mod record;

pub use chain::{Broken, Chain, GENESIS, LINE_BYTES_MAX, Verifier};
pub use filter::Filter;
pub use receipt::{Damage, ENTRIES_MAX, Receipt, ReceiptVerifier};
pub use record::{Decision, Record};
