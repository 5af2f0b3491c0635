//! Finds the parts of documents that fit a question. Documents are cut into chunks, and chunks are ranked by the words that they share
//! with the question (Okapi BM25). No model is needed.
//!
//! Pure: no I/O, and the same documents and questions give the same hits in the same order.
//!
//! ```
//! use atlas_retrieval::{ChunkSize, Index, chunks};
//!
//! let cut = ChunkSize { size: 40, overlap: 0 };
//! let tides = chunks("tides.md", "The moon causes the tides.\n\nThe sun helps.", cut);
//! let index = Index::new(tides);
//! let hits = index.search("what causes tides", 1);
//! assert_eq!(hits[0].text, "The moon causes the tides.");
//! ```

mod chunk;
mod rank;

pub use chunk::{Chunk, ChunkSize, chunks};
pub use rank::Index;
