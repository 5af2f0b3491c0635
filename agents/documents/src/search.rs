//! One search.

use std::path::Path;

use atlas_retrieval::{ChunkSize, Index, chunks};

use crate::files::{DocumentError, files, read};

/// Chunks of a result, if the search does not say.
const TOP_DEFAULT: u64 = 5;
const TOP_MAX: u64 = 100;

/// How documents are cut, if the search does not say, in characters.
const SIZE_DEFAULT: u64 = 1_000;
const SIZE_MAX: u64 = 100_000;
const OVERLAP_DEFAULT: u64 = 50;

/// The bound of all documents of a search.
const BYTES_MAX: u64 = 64 << 20;

/// What is searched, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct Search<'a> {
    /// Files, folders and patterns.
    pub documents: &'a [String],
    /// Most chunks of the result.
    pub top: Option<u64>,
    /// Characters of a chunk.
    pub chunk_size: Option<u64>,
    /// Characters that a chunk repeats of the one before.
    pub chunk_overlap: Option<u64>,
}

/// The best chunks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Matches {
    /// The chunks, each after a line with its document, the best first; empty if nothing fits.
    pub context: String,
    /// The documents, in the order of their best chunks.
    pub sources: Vec<String>,
}

impl Search<'_> {
    /// Searches in the folder of the agent.
    pub fn run(&self, folder: &Path, query: &str) -> Result<Matches, DocumentError> {
        let files = files(folder, self.documents)?;
        let folder = folder.canonicalize().map_err(DocumentError::Folder)?;
        let size = |number: u64| usize::try_from(number.min(SIZE_MAX)).unwrap_or(usize::MAX);
        let cut = ChunkSize {
            size: size(self.chunk_size.filter(|size| *size > 0).unwrap_or(SIZE_DEFAULT)),
            overlap: size(self.chunk_overlap.unwrap_or(OVERLAP_DEFAULT)),
        };
        let (mut all, mut left) = (Vec::new(), BYTES_MAX);
        for file in &files {
            let source = file.strip_prefix(&folder).unwrap_or(file).display().to_string();
            let Some(text) = read(file, &source)? else { continue };
            left = left.checked_sub(text.len() as u64).ok_or(DocumentError::Size { max: BYTES_MAX })?;
            all.extend(chunks(&source, &text, cut));
        }
        let top = usize::try_from(self.top.unwrap_or(TOP_DEFAULT).min(TOP_MAX)).unwrap_or(usize::MAX);
        let index = Index::new(all);
        let hits = index.search_words(query, top);
        let context: Vec<String> = hits.iter().map(|hit| format!("Source: {}\n{}", hit.source, hit.text)).collect();
        let mut sources: Vec<String> = Vec::new();
        for hit in &hits {
            if !sources.contains(&hit.source) {
                sources.push(hit.source.clone());
            }
        }
        Ok(Matches { context: context.join("\n\n"), sources })
    }
}
