//! Searches of `rag` nodes.

use std::path::Path;

use atlas_documents::Search;
use atlas_graph::Rag;
use serde_json::{Value, json};

/// Searches the documents of a node in the folder of its agent. An error says why they cannot be searched.
pub(crate) fn search(folder: &Path, rag: &Rag, query: &str) -> Result<Value, String> {
    let search = Search {
        documents: &rag.documents,
        top: rag.top_k,
        chunk_size: rag.chunk_size,
        chunk_overlap: rag.chunk_overlap,
    };
    let found = search.run(folder, query).map_err(|error| atlas_env::chain(&error))?;
    Ok(json!({"context": found.context, "sources": found.sources}))
}
