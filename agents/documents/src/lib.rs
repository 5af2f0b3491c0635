//! Searches the documents of an agent: files, folders and patterns of the agent's own folder, by the words of a query.
//!
//! Graphs search with `rag` nodes, agents with a `config.yaml` before each prompt. Nothing is fetched, and no path leaves the folder.

mod files;
mod search;
#[cfg(test)]
mod tests;

pub use files::{DocumentError, files};
pub use search::{Matches, Search};
