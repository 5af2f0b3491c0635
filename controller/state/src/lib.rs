//! The replicated state: a deterministic state machine from log entries to outcomes and events.
//!
//! It owns agents, nodes, jobs, leases, remembered requests and limits, and keeps the indexes that readers, planner and
//! leader tasks need, so that nothing scans. It decides nothing that needs a clock, a random number, a schema or a
//! scheduler: such results arrive in commands, and [`State::apply`] checks that they are still valid. All collections
//! are persistent, so a clone is cheap and never changes under its reader.
//!
//! ```
//! use atlas_state::State;
//! use atlas_types::{ClusterTime, Command, ConfigureCluster, Namespace, Origin, Outcome, Request, Timestamp};
//!
//! let mut state = State::new(1);
//! let (at, clock) = (Timestamp(1), ClusterTime(0));
//! state.begin_entry(at, clock);
//! let command = Command::ConfigureCluster(ConfigureCluster { config: state.config().clone() });
//! let request = Request { origin: Origin::duty(Namespace::default_namespace()), command };
//! let (outcome, events) = state.apply(&request, at, clock);
//! state.end_entry();
//! assert_eq!(outcome, Ok(Outcome::Done));
//! assert_eq!(events.len(), 1);
//! ```

mod apply;
mod change;
mod circuit;
mod command;
mod dedupe;
mod fair;
mod halves;
mod image;
mod index;
mod invariant;
mod jobs;
mod limits;
mod map;
mod node;
mod read;
mod state;
#[cfg(test)]
mod tests;

pub use apply::{Applied, Halt};
pub use command::submitted;
pub use image::ImageError;
pub use index::{Class, EXECUTION_GRACE, HeldBack, PREPARATION_MAX, Routing, Timer, TimerKey, TimerKind, job_timer};
pub use invariant::Violation;
pub use node::NodeState;
pub use state::State;
