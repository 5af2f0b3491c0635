//! When triggers fire: cron expressions, definitions, next times and the signatures of webhooks (compatibility §14).
//!
//! Pure: the caller passes the time, and submits the jobs.

mod cron;
mod definition;
mod schedule;
mod signature;

pub use cron::{Cron, CronError};
pub use definition::{Definition, DefinitionError, Kind, Target};
pub use schedule::{State, Submission, due, fired};
pub use signature::{sign, verify};
