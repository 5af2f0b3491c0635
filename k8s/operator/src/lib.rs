//! The operator for Kubernetes: resources of the group `atlas.dev` become objects and agents of a cluster, through the HTTP API.
//!
//! What is decided is in pure modules: what has to be sent (`object`, `agent`), what a status says (`status`), who works (`lease`). `reconcile`,
//! `elect` and `atlas` only carry it out. Jobs are no resources: they stay in the cluster.

mod agent;
mod atlas;
mod backoff;
mod elect;
mod kind;
mod lease;
mod object;
mod options;
mod problem;
mod reconcile;
mod request;
mod resource;
mod run;
mod status;
mod words;

pub use kind::{GROUP, Kind, VERSION};
pub use options::{Options, command};
pub use run::run;

#[cfg(test)]
mod tests;
