//! What is searched, and what a search finds.

use std::path::Path;

use atlas_retrieval::{Chunk, ChunkSize, Index, Query, VectorError, Vectors, chunks};

use crate::files::{DocumentError, files, read};

/// Chunks of a result, if the search does not say.
const TOP_DEFAULT: u64 = 5;
const TOP_MAX: u64 = 100;

/// How documents are cut, if the search does not say, in bytes.
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
    /// Bytes of a chunk.
    pub chunk_size: Option<u64>,
    /// Bytes that a chunk repeats of the one before.
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

impl Matches {
    /// Those of chunks, the best first.
    pub fn of<'c>(hits: impl IntoIterator<Item = &'c Chunk>) -> Self {
        let (mut context, mut sources) = (Vec::new(), Vec::new());
        for hit in hits {
            context.push(format!("Source: {}\n{}", hit.source, hit.text));
            if !sources.contains(&hit.source) {
                sources.push(hit.source.clone());
            }
        }
        Self { context: context.join("\n\n"), sources }
    }
}

impl Search<'_> {
    /// Searches in the folder of the agent, by words alone.
    pub fn run(&self, folder: &Path, query: &str) -> Result<Matches, DocumentError> {
        let index = Index::new(self.chunks(folder)?);
        Ok(Matches::of(index.search_words(query, self.top())))
    }

    /// The chunks of all documents, in their order. A document that is no text has none.
    pub fn chunks(&self, folder: &Path) -> Result<Vec<Chunk>, DocumentError> {
        let files = files(folder, self.documents)?;
        let folder = folder.canonicalize().map_err(DocumentError::Folder)?;
        let (mut all, mut left) = (Vec::new(), BYTES_MAX);
        for file in &files {
            let source = file.strip_prefix(&folder).unwrap_or(file).display().to_string();
            let Some(text) = read(file, &source)? else { continue };
            left = left.checked_sub(text.len() as u64).ok_or(DocumentError::Size { max: BYTES_MAX })?;
            all.extend(chunks(&source, &text, self.size()));
        }
        Ok(all)
    }

    /// What is searched for of a query: as much as a chunk has. None if it has no visible character.
    pub fn asked(&self, query: &str) -> Option<String> {
        chunks("query.txt", query, self.size()).into_iter().next().map(|chunk| chunk.text)
    }

    /// Most chunks of the result.
    pub fn top(&self) -> usize {
        usize::try_from(self.top.unwrap_or(TOP_DEFAULT).min(TOP_MAX)).unwrap_or(usize::MAX)
    }

    /// How documents are cut.
    pub fn size(&self) -> ChunkSize {
        let size = |number: u64| usize::try_from(number.min(SIZE_MAX)).unwrap_or(usize::MAX);
        ChunkSize {
            size: size(self.chunk_size.filter(|size| *size > 0).unwrap_or(SIZE_DEFAULT)),
            overlap: size(self.chunk_overlap.unwrap_or(OVERLAP_DEFAULT)),
        }
    }
}

/// The chunks that fit best, the best first: by words, and by vectors if there is one of the question and of each chunk.
pub fn hits(
    chunks: Vec<Chunk>,
    vectors: Option<Vec<Vec<f32>>>,
    (words, vector): (&str, Option<&[f32]>),
    most: usize,
) -> Result<Vec<Chunk>, VectorError> {
    let Some(rows) = vectors else {
        let index = Index::new(chunks);
        return Ok(index.search_words(words, most).into_iter().cloned().collect());
    };
    let vectors = Vectors::from_rows(rows.first().map_or(0, Vec::len), rows)?;
    let index = Index::with_vectors(chunks, vectors)?;
    let hits = index.search(&Query { vector, ..Query::new(words, most) })?;
    Ok(hits.iter().filter_map(|hit| index.chunk(hit.chunk).cloned()).collect())
}
