//! Tests with real processes on free loopback ports: what no simulation shows, because it needs a kernel that kills.
//!
//! The helpers are public: the transcripts of the command line start their clusters with them.

mod agents;
mod dev;
mod patience;
mod process;
mod program;

#[cfg(test)]
mod api;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod pair;
#[cfg(test)]
mod reload;

pub use agents::{Agent, write as write_agent};
pub use dev::Dev;
pub use patience::{LONG, eventually};
pub use process::Process;
pub use program::program;
