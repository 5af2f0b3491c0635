//! What the functions behind every door stand on: who calls and what it may do, errors, the state and the history, proposals, payloads, and
//! the records of who did what.
//!
//! It knows no subject. Doors do not use it: they have what they need from `atlas-service`, so that whom a caller acts for (`on_behalf`), who
//! owns what (`ownership`) and what is proposed (`requests`) stay with the functions behind them.

mod archive;
mod audit;
mod caller;
mod desk;
mod error;
pub mod gate;
mod issuers;
mod jobs;
pub mod json;
mod observations;
pub mod on_behalf;
pub mod ownership;
pub mod requests;
mod shown_object;
mod turns;

pub use audit::{Attempted, Audit, AuditOptions, TurnedAway, is_denial};
pub use caller::Caller;
pub use desk::{Consistency, Desk, LeadershipLost, Limits, Standstill};
pub use error::Error;
pub use issuers::{Fetched, Issuers, NoIssuers};
pub use shown_object::{ShownObject, shown as shown_object, shown_spec, with_revision};
pub use turns::Turns;
