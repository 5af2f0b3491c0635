//! The interface between Atlas and the machine: clock, randomness, tasks, network and files.
//!
//! Every shell takes an [`Env`]. No other code reads a clock, generates a random number, opens a socket or spawns a
//! task (`clippy.toml` bans the alternatives), so that a test or a simulation can replace the machine. Pure crates do
//! not use this crate; they get times and ids as arguments.
//!
//! This crate does not cover the log, whose own driver controls each sync, and child processes, which only the worker
//! has.

mod clock;
mod cores;
mod entropy;
mod error;
mod files;
mod lock;
mod memory;
mod net;
mod tasks;
mod text;
mod variables;
mod vitals;

use std::sync::Arc;

pub use clock::{Clock, SystemClock};
pub use cores::{CoreDumpError, no_core_dumps};
pub use entropy::{Entropy, SystemEntropy};
pub use error::chain;
pub use files::{FileReader, FileWriter, Files, SystemFiles, is_full};
pub use lock::{LockError, lock};
pub use memory::{Heap, huge_pages_as_the_system_does, know_start_memory, no_huge_pages};
pub use net::{Connection, Listener, Net, Proof, SystemNet};
pub use tasks::{Task, TaskEnd, Threads};
pub use text::{
    CONFIGURATION_BYTES_MAX, TOKEN_BYTES_MAX, line_at, read_bytes, read_private_text, read_text, read_text_from,
};
pub use variables::empty_is_unset;
pub use vitals::Vitals;

/// The interface to the machine; cheap to clone.
#[derive(Clone)]
pub struct Env {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// Sockets.
    pub net: Arc<dyn Net>,
    /// Files that are written completely or sequentially.
    pub files: Arc<dyn Files>,
    /// Where blocking work runs.
    pub threads: Threads,
    /// Whether all vital tasks are running.
    pub vitals: Vitals,
}

impl Env {
    /// The real machine.
    pub fn system() -> Self {
        Self {
            clock: Arc::new(SystemClock::new()),
            entropy: Arc::new(SystemEntropy),
            net: Arc::new(SystemNet),
            files: Arc::new(SystemFiles),
            threads: Threads::Machine,
            vitals: Vitals::default(),
        }
    }
}
