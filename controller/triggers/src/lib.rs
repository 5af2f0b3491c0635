//! When triggers fire: cron expressions, definitions, next times and the signatures of webhooks (compatibility §14).
//!
//! Pure: the caller passes the time, and submits the jobs.

mod cron;
mod definition;
mod plan;
mod rules;
mod schedule;
mod signature;
mod zone;

pub use cron::{Cron, CronError};
pub use definition::{Definition, DefinitionError, Fields, Kind, Target};
pub use plan::{Due, jitter};
pub use rules::{Overlap, Rules};
pub use schedule::{State, Submission, due, fired};
pub use signature::{sign, verify};
pub use zone::Zone;
