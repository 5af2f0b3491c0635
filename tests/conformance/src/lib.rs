//! Runs conformance rows, one verdict a row.
//!
//! A row fixes one behaviour that existing agents and clients rely on. This crate translates its shapes and decides nothing
//! itself: pure rules are asked of the library crates, everything else of the real programs over loopback. What a row needs and
//! Atlas does not have yet makes the row *not covered*: it is skipped with the reason, never passed.
#![deny(missing_docs)]

mod agents;
mod bench;
mod cluster;
mod http;
mod kind;
mod matcher;
mod program;
mod row;
mod run;
mod setup;
mod socket;
mod verdict;
mod workplace;

pub use bench::Bench;
pub use matcher::{Captures, Difference, difference};
pub use row::{Row, RowError};
pub use run::run;
pub use verdict::{Tally, Verdict};
