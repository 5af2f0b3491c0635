//! A base as it is searched: its documents, cut into chunks, and the index of these.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use atlas_api::types::UnreadableSegment;
use atlas_objects::{BaseSpec, ReadRule};
use atlas_retrieval::{Chunk, ChunkSize, Index, chunks};

use crate::catalogue::Row;
use crate::document::Document;
use crate::vectors::{Key, Table, key_of};

/// How many bytes an index takes for each byte of text, about.
const BYTES_OF_INDEX: usize = 3;

/// What a vector takes besides its numbers: its scale, and its key twice.
const BYTES_OF_VECTOR: usize = 64;

/// A base that is ready to be searched.
pub(crate) struct Loaded {
    /// Who finds which of its documents. They are those of this version of the base: a search may have begun with an older one.
    pub(crate) readers: Vec<ReadRule>,
    pub(crate) rows: Vec<Row>,
    /// The document of each chunk, by its place in `rows`.
    pub(crate) owners: Vec<u32>,
    pub(crate) index: Index,
    /// For each chunk what it is known by; empty in a base without models.
    pub(crate) keys: Vec<Key>,
    /// Those that have a vector.
    pub(crate) has_vector: HashSet<Key>,
    /// Artifacts of vectors that cannot be read.
    pub(crate) lost_vectors: Vec<String>,
    pub(crate) unreadable: Vec<UnreadableSegment>,
    /// About how much memory it takes.
    pub(crate) bytes: usize,
}

impl Loaded {
    /// Cuts documents of a base, in the order of its segments.
    pub(crate) fn new(
        spec: &BaseSpec,
        segments: Vec<Vec<Document>>,
        table: &Table,
        unreadable: Vec<UnreadableSegment>,
    ) -> Self {
        let size = usize::try_from(spec.chunk_size).unwrap_or(usize::MAX);
        let overlap = size / 100 * usize::try_from(spec.chunk_overlap).unwrap_or(0)
            + size % 100 * usize::try_from(spec.chunk_overlap).unwrap_or(0) / 100;
        let cut = ChunkSize { size, overlap };
        let removed: HashSet<&str> = spec.removed.iter().map(String::as_str).collect();
        let (mut rows, mut owners, mut all) = (Vec::new(), Vec::new(), Vec::<Chunk>::new());
        let mut bytes = 0;
        for document in segments.into_iter().flatten() {
            let row = Row::of(&document);
            if removed.contains(&*row.id) {
                continue;
            }
            let cut = chunks(&document.source, &document.text, cut);
            bytes += cut.iter().map(|chunk| chunk.source.len() + chunk.text.len()).sum::<usize>();
            owners.extend(std::iter::repeat_n(u32::try_from(rows.len()).unwrap_or(u32::MAX), cut.len()));
            all.extend(cut);
            rows.push(row);
        }
        let mut keys = Vec::new();
        if !spec.embedding.is_empty() || !spec.reranker.is_empty() {
            keys.extend(all.iter().map(|chunk| key_of(&chunk.text)));
        }
        let has_vector: HashSet<Key> = keys.iter().filter(|key| table.has(key)).copied().collect();
        bytes = bytes.saturating_mul(BYTES_OF_INDEX);
        let picked = table.pick(&keys).filter(|_| !has_vector.is_empty());
        bytes += picked.as_ref().map_or(0, |vectors| vectors.len() * (vectors.dimension() + BYTES_OF_VECTOR));
        // There is a row for each chunk, so that they fit.
        let index = match picked {
            Some(vectors) => Index::with_vectors(all, vectors).unwrap_or_default(),
            None => Index::new(all),
        };
        let readers = spec.readers.clone();
        Self { readers, rows, owners, index, keys, has_vector, lost_vectors: table.lost.clone(), unreadable, bytes }
    }

    /// The numbers of the chunks of a document.
    pub(crate) fn chunks_of(&self, place: usize) -> Range<usize> {
        let is_before = |owner: &u32, place: usize| usize::try_from(*owner).is_ok_and(|owner| owner < place);
        let from = self.owners.partition_point(|owner| is_before(owner, place));
        from..self.owners.partition_point(|owner| is_before(owner, place + 1))
    }

    /// What a chunk is known by; none in a base without models.
    pub(crate) fn key(&self, chunk: u32) -> Option<&Key> {
        self.keys.get(usize::try_from(chunk).ok()?)
    }

    /// The document of a chunk.
    pub(crate) fn row(&self, chunk: u32) -> Option<(usize, &Row)> {
        let place = usize::try_from(*self.owners.get(usize::try_from(chunk).ok()?)?).ok()?;
        Some((place, self.rows.get(place)?))
    }
}

/// Shared, because searches under way keep the one that they began with.
pub(crate) type SharedLoaded = Arc<Loaded>;
