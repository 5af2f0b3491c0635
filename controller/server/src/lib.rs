//! A controller: the replicated state, its history and its doors, wired together.
//!
//! [`Controller::start`] opens everything in order and [`Controller::shutdown`] closes it in reverse. Decisions are
//! made in other crates: this one owns sockets, frames and the table of options.

mod authentication;
mod backup;
mod cluster;
mod controller;
mod externals;
mod http;
mod http_limits;
mod identity;
mod issuers;
mod join;
mod listen;
mod options;
mod peer_door;
mod rules;
mod scaler_door;
mod start_error;
mod tls;
mod trace_export;
mod trigger_files;
mod watch;
mod worker_door;

pub use atlas_gateway::Token;
pub use controller::Controller;
pub use http_limits::HttpLimits;
pub use options::{
    Auth, CompatibleMcp, Loaded, Mode, OPTIONS, OptionRow, Options, OptionsError, command, load, reference,
};
pub use rules::Rules;
pub use start_error::{JoinError, StartError};

/// Bytes of the stack of a thread that runs the doors. Operations contain one another, such as a chain whose step is a chain, and builds
/// without optimization take most of the 2 MiB that threads have by default. Only what is used takes memory.
pub const STACK_BYTES: usize = 8 << 20;
