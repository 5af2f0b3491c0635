//! A base as it is searched: its documents, cut into chunks, and the index of these.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use atlas_api::types::UnreadableSegment;
use atlas_objects::{BaseSpec, ReadRule};
use atlas_retrieval::{Chunk, ChunkSize, Index, chunks};

use crate::catalogue::Row;
use crate::document::Document;
use crate::vectors::{Key, Table, key_of, version};

/// How many bytes an index takes for each byte of text, about.
const BYTES_OF_INDEX: usize = 3;

/// What a vector takes besides its numbers: its scale, and its key twice.
const BYTES_OF_VECTOR: usize = 64;

/// A base that is ready to be searched.
pub(crate) struct Loaded {
    /// Which documents and settings it is made of.
    pub(crate) of: String,
    /// What is known of the model that made its vectors, and since when they count; nothing without vectors.
    pub(crate) made_by: Option<(String, u64)>,
    /// When it was loaded.
    pub(crate) at: Duration,
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
        let vectors = spec.vectors.as_ref().filter(|_| index.dimension().is_some());
        let made_by = vectors.map(|vectors| (vectors.model.clone(), vectors.anew_at));
        let (of, at) = (version(spec), Duration::ZERO);
        Self {
            of,
            made_by,
            at,
            readers,
            rows,
            owners,
            index,
            keys,
            has_vector,
            lost_vectors: table.lost.clone(),
            unreadable,
            bytes,
        }
    }

    /// Whether it is as good as a base at another revision that lacks vectors, except that it lacks a few more.
    pub(crate) fn stands_for(&self, spec: &BaseSpec) -> bool {
        let Some(vectors) = spec.vectors.as_ref().filter(|vectors| vectors.missing > 0 && vectors.error.is_empty())
        else {
            return false;
        };
        let is_same = |made_by: &(String, u64)| made_by.0 == vectors.model && made_by.1 == vectors.anew_at;
        self.made_by.as_ref().is_none_or(is_same) && self.of == version(spec) && self.readers == spec.readers
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

#[cfg(test)]
mod tests {
    use atlas_objects::BaseVectors;

    use super::*;

    #[test]
    fn what_is_loaded_stands_for_a_base_whose_vectors_are_being_made() {
        let vectors = BaseVectors { missing: 2, ..BaseVectors::default() };
        let spec = BaseSpec { embedding: "small".to_owned(), vectors: Some(vectors), ..BaseSpec::default() };
        let loaded = Loaded::new(&spec, Vec::new(), &Table::default(), Vec::new());
        let changed = |change: fn(&mut BaseSpec, &mut BaseVectors)| {
            let (mut other, mut vectors) = (spec.clone(), spec.vectors.clone().unwrap_or_default());
            change(&mut other, &mut vectors);
            loaded.stands_for(&BaseSpec { vectors: Some(vectors), ..other })
        };
        assert!(changed(|_, vectors| vectors.missing = 1) && changed(|spec, _| spec.top_k = 9));
        assert!(!changed(|_, vectors| vectors.missing = 0), "all are there");
        assert!(!changed(|_, vectors| vectors.error.push('e')), "no more will come");
        assert!(
            !changed(|spec, _| spec.chunk_size = 100) && !changed(|spec, _| spec.readers.push(ReadRule::default()))
        );
        let loaded = Loaded { made_by: Some(("a".to_owned(), 0)), ..loaded };
        assert!(!loaded.stands_for(&spec), "its vectors are of another model");
    }
}
