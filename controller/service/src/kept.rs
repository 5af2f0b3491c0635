//! What a controller keeps in memory, by subject: data that knows no function of the service.

mod decided;
mod deliveries;
mod needs;
mod questions;

pub use self::deliveries::HookSender;

pub(crate) use self::decided::{ChainOrchestrators, remember};
pub(crate) use self::deliveries::{CALLS_MAX, Deliveries, Delivery, Outcome, short};
pub(crate) use self::needs::{Needs, Verdict};
pub(crate) use self::questions::{QuestionVector, QuestionVectors};
