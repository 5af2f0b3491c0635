//! One node's session, leases and slots as a pure machine: `slots.step(input, now) -> effects`.
//!
//! It decides what a worker does with each message of the leader and each end of an attempt: which slot runs which
//! attempt, what is reported and repeated, and when a lease is over by the worker's own clock. It reads no clock and
//! does no I/O;
//! `now` is the shell's monotonic time and must not go back.
//!
//! Invariants:
//! - no attempt runs after the session's time to live, counted from the *sending* of the last acknowledged renewal;
//! - a start that must be committed is reported only when nothing else is missing: until then nothing has run;
//! - a token runs at most once in a process's life, however often its grant arrives;
//! - of a journal, each recorded step is replayed before a new one is made, and a new one is used only once it is recorded;
//! - an attempt whose job may be parked does nothing until the leader has answered, and ends without a report if it is;
//! - a report stays until the leader has answered it, and is sent again in order after each reconnect;
//! - an idle slot serves only the namespace, package and devices it was made for;
//! - all slots, busy, idle or shutting down, hold no more memory and GPU memory than the node has.
//!
//! ```
//! use std::time::Duration;
//! use atlas_slots::{Effect, Input, Options, Slots};
//!
//! let mut slots = Slots::new(Options::default());
//! let effects = slots.step(Input::Connected, Duration::ZERO);
//! assert!(matches!(effects[..], [Effect::SendHello { .. }]));
//! ```

mod attempts;
mod deadline;
mod deltas;
mod lease_clock;
mod message;
mod pool;
mod replay;
mod reports;
mod room;
mod slots;
mod spool;
#[cfg(test)]
mod tests;

pub use deltas::{DeltaBatch, Deltas};
pub use message::{AttemptEnd, Effect, Input, Leave, SlotId, StopReason};
pub use pool::SlotKey;
pub use replay::{Recording, Replay, StepAnswer, StepDiffers, WrongSteps};
pub use slots::{Options, PARK_AFTER, Slots};
pub use spool::{Batch, Spool};
