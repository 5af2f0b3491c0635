//! The interface between Atlas and the machine: clock, randomness, tasks, network and files.
//!
//! Every shell takes an [`Env`]; nothing else reads a clock, draws a random number, opens a socket or spawns a task (`clippy.toml`
//! bans the alternatives), so that a test or a simulation can replace the machine. Code that decides takes
//! none of this: pure crates get times and ids as arguments.
//!
//! Not here: the log, whose own driver makes promises about single syncs, and child processes, which only the worker has.

mod clock;
mod entropy;
mod error;
mod files;
mod memory;
mod net;
mod tasks;
mod vitals;

use std::sync::Arc;

pub use clock::{Clock, SystemClock};
pub use entropy::{Entropy, SystemEntropy};
pub use error::chain;
pub use files::{FileReader, FileWriter, Files, SystemFiles, is_full};
pub use memory::{huge_pages_as_the_system_does, no_huge_pages};
pub use net::{Connection, Listener, Net, SystemNet};
pub use tasks::{Task, TaskEnd, Threads};
pub use vitals::Vitals;

/// The machine as a shell sees it. Cheap to clone.
#[derive(Clone)]
pub struct Env {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// Sockets.
    pub net: Arc<dyn Net>,
    /// Files that are written whole or from front to back.
    pub files: Arc<dyn Files>,
    /// Where blocking work runs.
    pub threads: Threads,
    /// Whether what is vital still runs.
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
