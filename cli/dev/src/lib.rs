//! A controller and a worker in one process, for development on one machine.
//!
//! Nothing here is a second implementation: a one-member controller and a worker are started as libraries, on loopback, with the
//! data in one folder. Growing to three controllers is a membership change, not a migration.
#![deny(missing_docs)]

mod cluster;
mod data;
mod port;

pub use atlas_telemetry::start_log;
pub use atlas_worker::{Python, run_if_asked};
pub use cluster::{Cluster, Options, StartError, chain, runtime};
pub use data::{DataDir, DataError};
pub use port::{PortError, Ports};
