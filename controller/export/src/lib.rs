//! The export of the history to PostgreSQL, for people who ask in SQL and for dashboards.
//!
//! The leader reads its own history file from the watermark that the database holds and writes rows and watermark in one
//! transaction. So a batch is written entirely or not at all, and exactly once, whichever controller leads. A database that is slow
//! or down delays the export and nothing else: the exporter reads the history when it can write, and keeps no events itself.
//!
//! * `rows` turns records of the history into rows, without I/O;
//! * `lineage` finds out whether rows and history agree, because either can be restored from a backup;
//! * `write` and `partition` are the statements, `migrate` creates the tables;
//! * [`Export`] is the task of the leader.
//!
//! Nothing replicated reads the database. This crate decides nothing about the state.

mod connect;
mod error;
mod exporter;
mod lineage;
mod migrate;
mod partition;
mod rows;
mod statement;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod write;

pub use error::ExportError;
pub use exporter::{CommittedEvent, Export, ExportParts};
pub use target::{ExportTarget, TargetError};
