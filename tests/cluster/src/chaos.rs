//! Chaos: real processes, real faults, clients that record the answers they got, and children that record what they
//! did.
//!
//! A run has a seed, which chooses its work and its faults; the timing differs from run to run. At the end, all faults
//! are healed, and the state of every controller is compared with the clients' journals and with the file of side
//! effects, which no part of Atlas writes. A run with too few operations or faults proves nothing and is void.

mod call;
mod check;
mod effects;
mod fault;
mod history;
mod journal;
mod needs;
mod report;
mod rig;
mod run;
mod scenario;
mod survey;
mod words;
mod workload;

#[cfg(test)]
mod tests;

pub(crate) use call::Request;
pub use effects::child;
pub(crate) use journal::Outcome;
pub use needs::{Needs, missing, skipped_aloud};
pub use report::{Faults, Ledger, RunReport};
pub use rig::{Layout, Rig};
pub use run::{Options, run};
pub use scenario::Scenario;
