//! The engine of chains (compatibility §12): definitions, what a run does next, and results.
//!
//! A [`Plan`] is a chain with the versions and schemas of its agents. [`next`] says what a run of it does after some steps: it makes
//! the input of the next step from the input of the chain and the outputs so far. The caller runs the steps.
//!
//! Pure. The cluster keeps runs in its replicated state, `atlas run-chain` keeps one in memory.

mod definition;
mod engine;
mod plan;
mod report;

pub use definition::{Chain, DefinitionError, Step};
pub use engine::{Next, StepInput, join, next};
pub use plan::{Plan, PlannedStep, context, metadata, unknown_agents};
pub use report::{Failed, Reported, result};
