//! The worker: keeps a session with the leader, runs agents in slots, streams what they say.
//!
//! What to do is decided by `atlas-slots`; this crate carries it out. The pump is one task that takes every input in turn;
//! each slot is a task that waits for its agent's pipes; the link is a task that keeps one stream open to whoever leads. They share
//! one reactor, so that a warm agent's answer wakes one thread, which passes it on itself; what blocks is done elsewhere. Agents never run in this process: see [`run_if_asked`].

mod agent;
mod controllers;
mod environment;
mod link;
mod mailbox;
mod metadata;
mod options;
mod pace;
mod packages;
mod payloads;
mod process;
mod provider;
mod pump;
mod python;
mod readiness;
mod results;
mod slot;
mod worker;

pub use environment::shared_environments;
pub use options::{Configuration, ConfigurationError, Options};
pub use process::{Confinement, run_if_asked};
pub use python::Python;
pub use worker::{PASSED, StartError, Worker};
