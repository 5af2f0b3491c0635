//! A controller and a worker in one process, for development on one machine; or several of each, with one process for
//! each.
//!
//! This crate starts the real controllers and workers as libraries, on the loopback interface, with their data in one
//! folder. Growing to three controllers is a membership change, so the first controller keeps its data.

pub mod addresses;
mod cluster;
mod data;
mod group;
mod member;
mod nearby;
mod port;
pub mod request;
mod sealing;
mod settings;

pub use addresses::ControllerAddresses;
pub use atlas_controller::{CompatibleMcp, Token};
pub use atlas_telemetry::start_log;
pub use atlas_worker::{NodeJs, PASSED, Python, run_if_asked};
pub use cluster::{Cluster, DevStartError, Options, runtime};
pub use data::{DataDir, DataError};
pub use group::{ChildError, ExitedProcess, Group, Joining, Process, processes};
pub use member::{ControllerOptions, Member, left_alone};
pub use nearby::{Nearby, cluster_with};
pub use port::{PortError, Ports};
pub use settings::{DevSettings, SettingsError};
