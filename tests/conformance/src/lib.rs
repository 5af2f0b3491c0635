//! Runs conformance rows, one result per row.
//!
//! A row fixes one behaviour that existing agents and clients rely on. This crate translates its shapes and decides
//! nothing itself: pure rules are tested in the library crates, everything else with the real programs over loopback. A
//! row that needs a missing feature is *not covered*: it is skipped with the reason, never passed.

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
mod socket;
mod workplace;

pub use bench::Bench;
pub use matcher::{Captures, Difference, difference};
pub use result::{RowResult, Tally};
pub use row::{Row, RowError};
pub use run::run;
