//! What must hold after every command, one file an invariant. Unit tests, the simulation and debug builds check them all.

use crate::state::State;

/// A broken invariant: a fault of ours, never an answer to a caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is broken: {detail}")]
pub struct Violation {
    /// Its name, such as `LEASE-1`.
    pub name: &'static str,
    /// What was found.
    pub detail: String,
}

impl State {
    /// Checks every invariant. This looks at the whole state; it is for tests, simulation, debug builds and loading.
    pub fn check_invariants(&self) -> Result<(), Violation> {
        Ok(())
    }
}
