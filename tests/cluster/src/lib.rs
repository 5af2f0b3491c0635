//! Tests with real processes on free loopback ports or in separate namespaces, for behaviour that depends on the
//! kernel, such as kills.
//!
//! The helpers are public, because the command line tests start their clusters with them.

pub mod chaos;
pub mod durable_chaos;
pub mod net;
pub mod soak;

mod agents;
mod dev;
mod disk;
mod machine;
mod pair;
mod patience;
mod process;
mod program;
mod rng;
mod shim;

#[cfg(test)]
mod alone;
#[cfg(test)]
mod any_controller;
#[cfg(test)]
mod api;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod backup;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod base_vectors;
#[cfg(test)]
mod budgets;
#[cfg(test)]
mod canary;
#[cfg(test)]
mod chain_bridge;
#[cfg(test)]
mod chains;
#[cfg(test)]
mod circuits;
#[cfg(test)]
mod client_programs;
#[cfg(test)]
mod coder;
#[cfg(test)]
mod collected_bases;
#[cfg(test)]
mod containers;
#[cfg(test)]
mod cores;
#[cfg(test)]
mod crashed_change;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod deltas;
#[cfg(test)]
mod disk_full;
#[cfg(test)]
mod document_bases;
#[cfg(test)]
mod drain;
#[cfg(test)]
mod durable_faults;
#[cfg(test)]
mod erasure;
#[cfg(test)]
mod exact;
#[cfg(test)]
mod follower;
#[cfg(test)]
mod following;
#[cfg(test)]
mod full_member;
#[cfg(test)]
mod graphs;
#[cfg(test)]
mod helpers;
#[cfg(test)]
mod hooks;
#[cfg(test)]
mod images;
#[cfg(test)]
mod in_doubt;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod kubernetes;
#[cfg(test)]
mod label;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod llm;
#[cfg(test)]
mod llm_tools;
#[cfg(test)]
mod local_model;
#[cfg(test)]
mod logins;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod mcp_agent;
#[cfg(test)]
mod mcp_bearers;
#[cfg(test)]
mod mcp_conformance;
#[cfg(test)]
mod mcp_doors;
#[cfg(test)]
mod mcp_faults;
#[cfg(test)]
mod mcp_health;
#[cfg(test)]
mod mcp_lists;
#[cfg(test)]
mod mcp_logins;
#[cfg(test)]
mod mcp_traces;
#[cfg(test)]
mod members;
#[cfg(test)]
mod membership;
#[cfg(test)]
mod model_chaos;
#[cfg(test)]
mod model_limits;
#[cfg(test)]
mod nested;
#[cfg(test)]
mod one_namespace;
#[cfg(test)]
mod openai;
#[cfg(test)]
mod openapi;
#[cfg(test)]
mod operating;
#[cfg(test)]
mod orchestrators;
#[cfg(test)]
mod ordering;
#[cfg(test)]
mod otlp;
#[cfg(test)]
mod outages;
#[cfg(test)]
mod packaged_tools;
#[cfg(test)]
mod parallel_changes;
#[cfg(test)]
mod permissions;
#[cfg(test)]
mod policies;
#[cfg(test)]
mod preparing;
#[cfg(test)]
mod questions;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod remotes;
#[cfg(test)]
mod research;
#[cfg(test)]
mod rolling;
#[cfg(test)]
mod searches;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod shared_memory;
#[cfg(test)]
mod sign_in;
#[cfg(test)]
mod skills;
#[cfg(test)]
mod small;
#[cfg(test)]
mod spawn;
#[cfg(test)]
mod store;
#[cfg(test)]
mod stored_models;
#[cfg(test)]
mod stores;
#[cfg(test)]
mod stream;
#[cfg(test)]
mod triggers;
#[cfg(test)]
mod trio;
#[cfg(test)]
mod upgrade;
#[cfg(test)]
mod variables;
#[cfg(test)]
mod webhooks;
#[cfg(test)]
mod workers;

pub use agents::{Agent, write as write_agent};
pub use dev::Dev;
pub use disk::Disk;
pub use machine::{Machine, Role};
pub use patience::{LONG, eventually};
pub use process::Process;
pub use program::program;
pub use shim::{Shim, build as build_shim};
