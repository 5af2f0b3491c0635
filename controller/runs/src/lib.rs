//! The engine of chains (compatibility §12): definitions, what a run does next, and results.
//!
//! A [`Plan`] is a chain with the versions and schemas of its agents. [`next`] says what a run of it does after some steps: it makes
//! the input of the next step from the input of the chain and the outputs so far. A chain with branches has [`wave`] instead, which says what
//! begins and ends together. The caller runs the steps.
//!
//! Pure. The cluster keeps runs in its replicated state, `atlas run-chain` keeps one in memory.

mod branches;
mod definition;
mod engine;
mod flow;
mod plan;
mod report;

pub use branches::{AT_ONCE_MAX, End, Fact, Source, Wave, facts, schema_of, sources, wave};
pub use definition::{Chain, DefinitionError, Step};
pub use engine::{Next, StepInput, join, next};
pub use flow::{Flow, FlowError, NAMES, Without};
pub use plan::{Plan, PlannedStep, context, step_job, unknown_agents};
pub use report::{FailureReport, StepReport, result};
