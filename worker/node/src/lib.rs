//! The worker: keeps a session with the leader, runs agents in slots, streams their log lines.
//!
//! `atlas-slots` decides; this crate carries the decisions out. The pump is one task that processes every input in
//! turn; each slot is a task that waits for its agent's pipes; the link is a task that keeps one stream open to the
//! leader. They share one reactor, so that a warm agent's answer wakes only one thread; blocking work runs on other
//! threads. Programs of agents never run in this process: see [`run_if_asked`].

mod agent;
mod attempt;
mod backoff;
mod cgroup;
mod controllers;
mod data;
mod environment;
mod folder;
mod inside;
mod interpreter;
mod journal;
mod link;
mod local_models;
mod mailbox;
mod metadata;
mod model_environment;
mod news;
mod nodejs;
mod options;
mod packages;
mod payloads;
mod piped;
mod prepared;
mod preparing;
mod process;
mod provider;
mod pump;
mod python;
mod readiness;
mod results;
mod sandbox;
mod sdk;
mod secrets;
mod slot;
mod texts;
mod tls;
mod tries;
mod worker;

pub use atlas_sandbox::Means as SandboxMeans;
pub use cgroup::Cgroup;
pub use environment::shared_environments;
pub use inside::{Inside, InsideJob};
pub use journal::{ChildCall, ChildEnd, Journal, JournalError, Made, Received};
pub use model_environment::ModelEnvironment;
pub use nodejs::NodeJs;
pub use options::{Configuration, ConfigurationError, Group, Options, Scheme};
pub use prepared::PreparedWorker;
pub use process::{Confinement, run_if_asked};
pub use python::Python;
pub use sandbox::SandboxMode;
pub use secrets::SecretSources;
pub use tls::{JoinError, join};
pub use worker::{PASSED, StartError, Worker};
