//! Finds the parts of documents that fit a question.
//!
//! Documents are cut into chunks by their kind ([`chunks`]). An [`Index`] ranks chunks by the words that they share with the question
//! (Okapi BM25 with English stems), and, if they have [`Vectors`], also by the cosine of their embeddings and that of the question. Both
//! are fused into one order ([`Fusion`]). Words alone need no model. [`evaluate`] tells how good answers are.
//!
//! What a caller may not read is no candidate: hits, ranks and scores are those of an index without it.
//!
//! Pure: no I/O, and the same documents and questions give the same hits in the same order. It makes no embeddings, and the time that
//! a search takes depends on all chunks: there is no graph of neighbours.
//!
//! ```
//! use atlas_retrieval::{ChunkSize, Index, Query, Vectors, chunks};
//!
//! let cut = ChunkSize { size: 40, overlap: 0 };
//! let tides = chunks("tides.md", "The moon causes the tides.\n\nThe sun helps.", cut);
//! let index = Index::new(tides.clone());
//! assert_eq!(index.search_words("what causes tides", 1)[0].text, "The moon causes the tides.");
//!
//! let vectors = Vectors::from_rows(2, [[0.9, 0.1], [0.2, 1.0]])?;
//! let index = Index::with_vectors(tides, vectors)?;
//! let question = Query { vector: Some(&[0.1, 0.9]), ..Query::new("daylight", 1) };
//! let hits = index.search(&question)?;
//! assert_eq!(hits[0].chunk, 1);
//! assert!(hits[0].by_words.is_none());
//! # Ok::<(), atlas_retrieval::VectorError>(())
//! ```

mod chunk;
mod evaluate;
mod fusion;
mod index;
mod postings;
mod separators;
mod vectors;
mod words;

pub use chunk::{Chunk, ChunkSize, chunks};
pub use evaluate::{Evaluation, evaluate};
pub use fusion::Fusion;
pub use index::{Hit, Index, Query, Rank};
pub use vectors::{VectorError, VectorOf, Vectors};
