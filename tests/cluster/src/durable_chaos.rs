//! Durable programs through `kill -9` of their own processes, of workers and of the leader, at every boundary of their steps.
//!
//! Families of jobs run programs of twenty steps in three languages, with waits, messages, questions and children between them. A seed plans
//! which fault meets which family where; the program itself stands still there until it is killed, or goes on while it is. What the programs
//! did, they wrote to files outside of Atlas, and that is what is checked.

mod agents;
mod care;
mod check;
mod drive;
mod plan;
mod report;
mod trace;

#[cfg(test)]
mod tests;

pub use drive::{Options, run};
pub use plan::Language;
pub use report::Report;
