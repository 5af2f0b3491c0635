//! A controller and a worker in one process, for development on one machine.
//!
//! Nothing here is a second implementation: a one-member controller and a worker are started as libraries, on loopback, with the
//! data in one folder. Growing to three controllers is a membership change, not a migration.
#![deny(missing_docs)]

mod data;
mod port;

pub use data::{DataDir, DataError};
pub use port::{PortError, Ports};
