//! Runs conformance rows, one result per row.
//!
//! A row defines one behaviour that existing agents and clients rely on. This crate only translates the rows: pure
//! rules are tested against the library crates, everything else against the real programs over loopback. A row that
//! needs a missing feature is *not covered*: it is skipped with the reason, and never counts as passed.

mod agents;
mod bench;
mod cluster;
mod http;
mod kind;
mod matcher;
mod program;
mod result;
mod row;
mod run;
mod setup;
mod skills;
mod socket;
mod workplace;

pub use bench::Bench;
pub use matcher::{Captures, Difference, difference};
pub use result::{RowResult, Tally};
pub use row::{Row, RowError};
pub use run::run;
