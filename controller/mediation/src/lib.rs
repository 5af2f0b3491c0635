//! Mediation: converts the output of one agent to the input of the next (compatibility §11).
//!
//! [`analyze`] compares the schema of the output with the schema of the input and selects one strategy; [`mediate`] applies it. A
//! strategy that fails is not followed by another. Only top-level properties and their single `type` count.
//!
//! Pure. What needs a model is prepared and checked by [`Bridge`]; the caller makes the calls.

mod analyze;
mod bridge;
mod convert;
mod path;
mod reach;
mod report;
mod similarity;
mod strategy;

pub use analyze::analyze;
pub use bridge::{ATTEMPTS_MAX, Bridge, BridgeError, extract_json};
pub use convert::fits_property;
pub use path::Context;
pub use reach::{Schemas, Unreachable, reach};
pub use report::{Coercion, Level, Report};
pub use similarity::{similarity, tokenize};
pub use strategy::{MediationError, MediationResult, Plan, mapped, mediate};
