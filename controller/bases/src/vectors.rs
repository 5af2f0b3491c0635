//! Vectors of chunks. A vector is known by the digest of the text that it was made of, so it stays right when documents move between segments, and
//! a chunk whose text was there before costs no model call.

mod file;
mod store;
mod texts;

use std::collections::HashMap;

use atlas_artifacts::digest_of;
use atlas_objects::BaseSpec;
use atlas_retrieval::Vectors;

pub(crate) use file::{decode, encode};
#[cfg(test)]
pub(crate) use store::ERROR_BYTES_MAX;
pub use store::{NewVectors, VectorGap};

/// Most bytes of the vectors of one base.
pub(crate) const VECTOR_BYTES_MAX: u64 = 512 << 20;

/// The bytes of a digest that are a key.
const KEY_BYTES: usize = 16;

/// What the vector of a text is known by.
pub(crate) type Key = [u8; KEY_BYTES];

/// The key of a text.
pub(crate) fn key_of(text: &str) -> Key {
    let mut key = [0; KEY_BYTES];
    key.copy_from_slice(&digest_of(text.as_bytes()).0[..KEY_BYTES]);
    key
}

/// What a chunk is known by outside of this crate: the digits of its key.
pub fn chunk_key(text: &str) -> String {
    shown(&key_of(text))
}

pub(crate) fn shown(key: &Key) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A digest of all that decides which chunks a base has, and which model makes their vectors.
pub(crate) fn version(spec: &BaseSpec) -> String {
    let segments: Vec<&str> = spec.segments.iter().map(|segment| segment.digest.as_str()).collect();
    let told = serde_json::json!([segments, spec.removed, spec.chunk_size, spec.chunk_overlap, spec.embedding]);
    let hex = digest_of(told.to_string().as_bytes()).hex();
    hex.chars().take(2 * KEY_BYTES).collect()
}

/// Vectors by the texts that they were made of.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: HashMap<Key, (usize, usize)>,
    parts: Vec<Vectors>,
    /// Artifacts that cannot be read: their vectors are made again.
    pub(crate) lost: Vec<String>,
}

impl Table {
    /// Adds the vectors of one artifact. Those of another length than the first ones are left out.
    pub(crate) fn add(&mut self, keys: Vec<Key>, vectors: Vectors) {
        if self.dimension().is_some_and(|dimension| dimension != vectors.dimension()) {
            return;
        }
        let part = self.parts.len();
        self.rows.extend(keys.into_iter().enumerate().map(|(row, key)| (key, (part, row))));
        self.parts.push(vectors);
    }

    /// The length of its vectors; none without one.
    pub(crate) fn dimension(&self) -> Option<usize> {
        self.parts.first().map(Vectors::dimension)
    }

    /// A row for each key in order: one without a vector is near nothing. None if the table is empty.
    pub(crate) fn pick(&self, keys: &[Key]) -> Option<Vectors> {
        let mut picked = Vectors::new(self.dimension()?).ok()?;
        for key in keys {
            let row = self.rows.get(key).and_then(|(part, row)| Some((self.parts.get(*part)?, *row)));
            if !row.is_some_and(|(vectors, row)| picked.push_row_of(vectors, row)) {
                picked.push_none();
            }
        }
        Some(picked)
    }

    /// Whether it has a vector for a key.
    pub(crate) fn has(&self, key: &Key) -> bool {
        self.rows.contains_key(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_finds_its_vector_in_any_artifact() {
        let mut table = Table::default();
        assert!(table.pick(&[key_of("a")]).is_none());
        table.add(vec![key_of("a")], Vectors::from_rows(2, [[1.0, 0.0]]).expect("a direction"));
        table.add(vec![key_of("b")], Vectors::from_rows(2, [[0.0, 1.0]]).expect("a direction"));
        // Another model's.
        table.add(vec![key_of("c")], Vectors::from_rows(3, [[0.0, 1.0, 0.0]]).expect("a direction"));
        let picked = table.pick(&["b", "c", "a"].map(key_of)).expect("a table");
        assert_eq!((picked.len(), table.has(&key_of("b")), table.has(&key_of("c"))), (3, true, false));
    }

    #[test]
    fn what_decides_the_chunks_decides_the_version() {
        let spec = BaseSpec { embedding: "small".to_owned(), ..BaseSpec::default() };
        let changed = |change: fn(&mut BaseSpec)| {
            let mut other = spec.clone();
            change(&mut other);
            version(&other) != version(&spec)
        };
        assert!(changed(|spec| spec.chunk_size = 100) && changed(|spec| spec.removed.push("ab".repeat(16))));
        assert!(changed(|spec| spec.embedding.push('x')) && changed(|spec| spec.segments.push(Default::default())));
        assert!(!changed(|spec| spec.top_k = 9) && !changed(|spec| spec.vectors = Some(Default::default())));
    }
}
