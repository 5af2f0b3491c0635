//! Searches the documents of an agent: files, folders and patterns of the agent's own folder, by the words of a query.
//!
//! Graphs search with `rag` nodes, agents with a `config.yaml` before each prompt. Nothing is fetched, and no path leaves the folder. Where a
//! model turns the chunks into vectors, [`VectorCache`] keeps those of chunks that do not change.

mod files;
mod search;
#[cfg(test)]
mod tests;
mod vectors;

pub use atlas_retrieval::{Chunk, VectorError};
pub use files::{DocumentError, files};
pub use search::{Matches, Search, hits};
pub use vectors::{VectorCache, VectorKey};
