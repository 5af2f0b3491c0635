//! The write-ahead log: entries, vote, commit mark and purge mark of one member, in segments on disk.
//!
//! Promises B.35–B.37: data that was reported durable survives a crash. A torn tail is cut off only after the last
//! durable group, which the durable mark ([`mark`]) records. Damage before it is an error with the file and the offset,
//! and is never read as other data. A failed sync poisons the log.
//!
//! Modules: [`record`], [`segment`], [`core`], [`mark`] and [`recover`] are pure, bytes in and plans out. [`store`]
//! executes plans on a [`driver::Driver`]: [`mod@file`] on disk, [`sim`] in memory with crashes. Nothing here knows
//! Raft's rules or openraft.

pub mod block;
pub mod core;
pub mod driver;
pub mod error;
pub mod file;
pub mod index;
pub mod mark;
pub mod record;
pub mod recover;
pub mod segment;
pub mod sim;
pub mod store;
mod sync_times;
#[cfg(test)]
mod tests;

pub use driver::{Driver, MarkFile, Segment, Space};
pub use error::LogError;
pub use file::FileDriver;
pub use record::{LogId, Record, Vote};
pub use store::{Limits, Log};
