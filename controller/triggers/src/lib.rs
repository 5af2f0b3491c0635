//! When triggers fire: cron expressions, definitions, next times and the signatures of webhooks (compatibility §14).
//!
//! Pure: the caller passes the time, and submits the jobs.

mod cron;
mod definition;
mod delay;
mod plan;
mod replan;
mod rules;
mod schedule;
mod scheme;
mod signature;
mod zone;

pub use cron::{Cron, CronError};
pub use definition::{Definition, DefinitionError, Fields, Kind, Target};
pub use plan::Due;
pub use replan::Before;
pub use rules::{Overlap, Rules};
pub use schedule::{State, Submission, due, fired};
pub use scheme::{Call, SIGNED_HEADERS, Scheme, superseded};
pub use signature::{sign, verify};
pub use zone::Zone;
