//! The HTTP interface as data: every operation with its path, its right, its parameters and its answers.
//!
//! The door serves exactly these rows. Routes, rights, the OpenAPI document, the reference page and the tests of who may do what
//! come from them, so they always agree. The crate reads nothing and waits for nothing; programs on both sides link it.

pub mod catalogue;
#[cfg(test)]
mod clients;
mod document;
mod operations;
#[cfg(test)]
mod reference;
mod route;
pub mod types;
pub mod words;

pub use catalogue::Entry;
pub use document::document;
pub use operations::operation::{
    Body, Content, Kind, OPENAI, Operation, Ownership, Parameter, ParameterLocation, Success, Verb, status_of,
};
pub use operations::{
    Access, Agents, Audit, Bases, Chains, Cluster, Conversations, Events, Figures, Jobs, Library, Nodes, Objects,
    Openai, OperationId, Orchestrators, Policies, Questions, Skills, Triggers, operations,
};
pub use route::{Names, Route, bytes_decoded, percent_decoded, route};
pub use types::schemas;

/// The most entries of one page of a list.
pub const LIMIT_MAX: u64 = 1_000;
