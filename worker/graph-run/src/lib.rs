//! Carries out the runs of graph agents.
//!
//! [`Runner::run`] drives the engine of atlas-graph: it starts scripts as processes ([`script`]), leads model nodes through the agent
//! loop of atlas-turn, runs nested graphs, and lets its [`Host`] call models, ask people and run other agents. Work that is no longer
//! needed is dropped, and its processes are killed.

mod drive;
mod host;
mod model;
pub mod script;
pub mod search;
#[cfg(test)]
mod tests;

pub use drive::{Ran, Runner, Stop};
pub use host::{Beginning, Host, NodePlace, NodeQuestion, Piece};
pub use script::{Process, ProcessEnd};
pub use search::{Embedder, SearchModels, SearchSettings};
