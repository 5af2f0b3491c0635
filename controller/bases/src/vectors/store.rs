//! Which chunks of a base have no vector, and keeping those that a model has made.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use atlas_desk::{Caller, Consistency, Error};
use atlas_objects::{BaseSpec, BaseVectors, VECTOR_SEGMENTS_MAX, VectorSegment};
use atlas_retrieval::Vectors;
use atlas_types::{Digest, EventSeq, Expect, Object};

use super::{KEY_BYTES, Key, Table, VECTOR_BYTES_MAX, decode, encode, shown, version};
use crate::Bases;
use crate::catalogue::{Unread, unread};
use crate::loaded::SharedLoaded;
use crate::merge::to_join;
use crate::segment::SEGMENT_BYTES_MAX;
use crate::write::{TRIES, key, unknown, written_bytes};

/// Bytes of a row besides its numbers: its scale and its key.
const ROW_BYTES: usize = 4 + KEY_BYTES;

/// Most bytes of an error, as the object has it. Each character counts a few more.
pub(crate) const ERROR_BYTES_MAX: usize = 2 << 10;

/// Vectors of texts that are gone which always remain, so that small bases are not written over and over.
const DEAD_ROWS_LEFT: u64 = 1_024;

/// A base whose chunks have no vectors, or not all of them.
pub struct VectorGap {
    name: String,
    loaded: SharedLoaded,
    /// The chunks without a vector, each text once.
    chunks: Vec<u32>,
    /// The object: another one of the same name has other documents.
    pub uid: EventSeq,
    /// The model that is to make them.
    pub embedding: String,
    /// The revision of the base from which on all vectors were to be made anew; 0 if nobody asked for that.
    pub anew_at: u64,
    /// Numbers of a vector; 0 if there are none.
    pub dimension: usize,
    /// Which documents and settings it is about.
    pub of: String,
}

/// Vectors that a model has made, or why it has not.
#[derive(Debug, Clone, Default)]
pub struct NewVectors {
    /// What is known of the model.
    pub model: String,
    /// The chunks, by their places in [`VectorGap`], in the order of the rows.
    pub places: Vec<usize>,
    /// The rows; none if there are none.
    pub vectors: Option<Arc<Vectors>>,
    /// How many texts have no vector after them.
    pub left: usize,
    /// Why there are no more; empty if nothing failed.
    pub error: String,
}

impl NewVectors {
    /// Whether they say no more than how many texts have no vector.
    fn is_nothing(&self) -> bool {
        self.vectors.is_none() && self.error.is_empty() && self.left > 0
    }
}

impl VectorGap {
    /// How many texts have no vector.
    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Whether each text has a vector.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// A text without a vector.
    pub fn text(&self, place: usize) -> Option<&str> {
        Some(&self.loaded.index.chunk(*self.chunks.get(place)?)?.text)
    }

    /// The source of the document of a text without a vector.
    pub fn source(&self, place: usize) -> Option<&str> {
        self.loaded.row(*self.chunks.get(place)?).map(|(_, row)| &*row.source)
    }

    /// Refuses vectors of a length for which the base has no room: they would be paid for and thrown away.
    pub fn check_room(&self, dimension: usize) -> Result<(), Error> {
        let rows = (self.loaded.has_vector.len() + self.chunks.len()) as u64;
        match rows.saturating_mul((dimension + ROW_BYTES) as u64) > VECTOR_BYTES_MAX {
            true => Err(full(&self.name)),
            false => Ok(()),
        }
    }

    /// What a text without a vector is known by.
    pub fn chunk_key(&self, place: usize) -> Option<String> {
        self.key(place).as_ref().map(shown)
    }

    /// Whether an object is this base with these documents and settings.
    pub fn is_of(&self, object: &Object) -> bool {
        object.uid == self.uid && BaseSpec::read(&object.spec).is_ok_and(|spec| version(&spec) == self.of)
    }

    fn key(&self, place: usize) -> Option<Key> {
        self.loaded.key(*self.chunks.get(place)?).copied()
    }
}

impl Bases {
    /// The chunks of a base that have no vector, as the base is now. None for a base without a model for vectors.
    pub async fn missing_vectors(&self, caller: &Caller, name: &str) -> Result<Option<VectorGap>, Error> {
        let (object, spec) = self.find(caller, name, Consistency::Linearizable).await?;
        if spec.embedding.is_empty() {
            return Ok(None);
        }
        let loaded = self.loaded(&object, &spec).await?;
        let (of, embedding) = (version(&spec), spec.embedding.clone());
        let BaseVectors { anew_at, dimension, segments, .. } = spec.vectors.unwrap_or_default();
        let dimension = if segments.is_empty() { 0 } else { usize::try_from(dimension).unwrap_or(usize::MAX) };
        let name = name.to_owned();
        let kept = loaded.clone();
        let chunks = self.off(move || missing(&kept)).await?;
        Ok(Some(VectorGap { name, loaded, chunks, uid: object.uid, embedding, anew_at, dimension, of }))
    }

    /// Keeps vectors, and says in the object how far it is. Fails if the base has vectors of another model.
    pub async fn add_vectors(
        &self,
        caller: &Caller,
        name: &str,
        missing: &VectorGap,
        new: &NewVectors,
    ) -> Result<(), Error> {
        let Ok(base) = key(caller, name) else { return Err(unknown(name)) };
        let keys: Vec<Key> = new.places.iter().filter_map(|place| missing.key(*place)).collect();
        let _turn = self.turns.take(&base).await;
        for _ in 0..TRIES {
            let (object, mut spec) = self.find(caller, name, Consistency::Linearizable).await?;
            let before = spec.vectors.clone();
            let mut vectors = spec.vectors.take().unwrap_or_default();
            let is_other = object.uid != missing.uid || spec.embedding != missing.embedding;
            if is_other || vectors.anew_at != missing.anew_at {
                return Ok(());
            }
            vectors.embedding.clone_from(&spec.embedding);
            vectors.segments.retain(|segment| !missing.loaded.lost_vectors.contains(&segment.digest));
            if let Some(rows) = new.vectors.as_ref().filter(|_| !keys.is_empty()) {
                fits(name, &vectors, &new.model, rows.dimension())?;
                (vectors.model, vectors.dimension) = (new.model.clone(), rows.dimension() as u64);
                let (mut keys, mut rows) = (keys.clone(), rows.clone());
                if version(&spec) != missing.of {
                    // What was removed meanwhile, perhaps to be erased, does not come back.
                    let now = self.loaded(&object, &spec).await?;
                    (keys, rows) = self.off(move || living(&keys, &rows, &now)).await?;
                }
                if !keys.is_empty() {
                    self.append_vectors(&mut vectors, keys, rows).await?;
                }
            }
            let rows: u64 = vectors.segments.iter().map(|segment| segment.rows).sum();
            let is_full = |vectors: &BaseVectors| {
                vectors.segments.iter().map(|segment| segment.bytes).sum::<u64>() > VECTOR_BYTES_MAX
            };
            let is_current = version(&spec) == missing.of;
            let has_dead_rows = rows > 2 * missing.loaded.owners.len() as u64 + DEAD_ROWS_LEFT;
            if is_current && (has_dead_rows || is_full(&vectors)) {
                self.compact_vectors(&mut vectors, &missing.loaded).await?;
            }
            if is_full(&vectors) {
                return Err(full(name));
            }
            // A failure counts until something has succeeded: a base that is tried in vain is not written again and again.
            let is_tried_again = new.is_nothing() && vectors.of == missing.of;
            if !is_tried_again {
                vectors.error = bounded(&new.error);
            }
            vectors.of.clone_from(&missing.of);
            vectors.chunks = missing.loaded.owners.len() as u64;
            vectors.missing = new.left as u64;
            if before.as_ref() == Some(&vectors) {
                return Ok(());
            }
            spec.vectors = Some(vectors);
            match self.put_vectors(caller, &object, &spec).await {
                Ok(()) => return Ok(()),
                Err(Error::ObjectChanged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Overloaded)
    }

    /// Writes vectors anew without those of texts that are no longer in the base.
    pub(crate) async fn compact_vectors(&self, vectors: &mut BaseVectors, live: &SharedLoaded) -> Result<(), Error> {
        let live: HashSet<Key> = live.keys.iter().copied().collect();
        let segments = std::mem::take(&mut vectors.segments);
        let mut run = 0..0;
        while run.end < segments.len() {
            let bytes = |run: Range<usize>| segments.get(run).into_iter().flatten().map(|one| one.bytes).sum::<u64>();
            run = run.end..run.end + 1;
            while run.end < segments.len() && bytes(run.start..run.end + 1) <= self.vector_bytes_max() {
                run.end += 1;
            }
            let joined = segments.get(run.clone()).unwrap_or_default();
            self.write_vectors(vectors, joined, None, Some(&live)).await?;
        }
        Ok(())
    }

    /// Adds vectors as an artifact, and joins the latest ones with it as far as they have to be.
    async fn append_vectors(&self, vectors: &mut BaseVectors, keys: Vec<Key>, rows: Arc<Vectors>) -> Result<(), Error> {
        let mut bytes: Vec<u64> = vectors.segments.iter().map(|segment| segment.bytes).collect();
        bytes.push((keys.len() * (rows.dimension() + ROW_BYTES)) as u64);
        let mut first = to_join(&bytes, self.vector_bytes_max()).unwrap_or(vectors.segments.len());
        if first >= VECTOR_SEGMENTS_MAX {
            first = VECTOR_SEGMENTS_MAX - 1;
        }
        let joined: Vec<VectorSegment> = vectors.segments.drain(first.min(vectors.segments.len())..).collect();
        self.write_vectors(vectors, &joined, Some((keys, rows)), None).await
    }

    /// Writes the vectors of artifacts, and others behind them, as one. Of two for one text, the later one stays.
    async fn write_vectors(
        &self,
        vectors: &mut BaseVectors,
        joined: &[VectorSegment],
        others: Option<(Vec<Key>, Arc<Vectors>)>,
        live: Option<&HashSet<Key>>,
    ) -> Result<(), Error> {
        let mut parts = Vec::new();
        for segment in joined {
            match self.vector_segment(segment).await {
                Ok((keys, rows)) => parts.push((keys, Arc::new(rows))),
                // They are made again.
                Err(Unread::Lost(_)) => {}
                Err(Unread::Error(error)) => return Err(error),
            }
        }
        parts.extend(others);
        let live = live.cloned();
        let packed = self.off(move || pack(&parts, live.as_ref())).await?;
        let Some((bytes, rows)) = packed else { return Ok(()) };
        let size = bytes.len() as u64;
        let digest = self.store(bytes).await?;
        vectors.segments.push(VectorSegment { digest: digest.hex(), rows: rows as u64, bytes: size });
        Ok(())
    }

    /// The vectors of an artifact.
    async fn vector_segment(&self, segment: &VectorSegment) -> Result<(Vec<Key>, Vectors), Unread> {
        let digest: Digest = segment.digest.parse().map_err(|_| Unread::Error(Error::Internal))?;
        let bytes = self.desk.artifacts.read(digest).await.map_err(unread)?;
        let decoded = self.off(move || decode(&bytes)).await.map_err(Unread::Error)?;
        decoded.map_err(|error| {
            tracing::error!(%digest, error = &error as &dyn std::error::Error, "could not read vectors of a document base");
            Unread::Lost(error.to_string())
        })
    }

    /// All vectors of a base that can be read.
    pub(crate) async fn table(&self, spec: &BaseSpec) -> Result<Table, Error> {
        let mut table = Table::default();
        for segment in spec.vectors.iter().flat_map(|vectors| &vectors.segments) {
            match self.vector_segment(segment).await {
                Ok((keys, rows)) => table.add(keys, rows),
                Err(Unread::Lost(_)) => table.lost.push(segment.digest.clone()),
                Err(Unread::Error(error)) => return Err(error),
            }
        }
        Ok(table)
    }

    /// Most bytes of an artifact of vectors here.
    fn vector_bytes_max(&self) -> u64 {
        self.desk.artifacts.bytes_max().min(SEGMENT_BYTES_MAX as u64)
    }

    async fn put_vectors(&self, caller: &Caller, object: &Object, spec: &BaseSpec) -> Result<(), Error> {
        let expect = Expect::Revision(object.revision);
        self.put(caller, (&object.key, (*object.labels).clone()), spec, expect).await
    }
}

/// The beginning of an error, as far as the object of a base has room for it.
fn bounded(error: &str) -> String {
    let mut bytes = 0;
    let has_room = |c: &char| {
        bytes += written_bytes(c.encode_utf8(&mut [0; 4]));
        bytes <= ERROR_BYTES_MAX
    };
    error.chars().filter(|c| !c.is_control()).take_while(has_room).collect()
}

/// The chunks without a vector, of equal texts the first.
fn missing(loaded: &SharedLoaded) -> Vec<u32> {
    let mut seen = HashSet::new();
    let places = (0_u32..).zip(&loaded.keys);
    places.filter(|(_, key)| !loaded.has_vector.contains(*key) && seen.insert(**key)).map(|(chunk, _)| chunk).collect()
}

/// The rows of the texts that are in a base.
fn living(keys: &[Key], rows: &Arc<Vectors>, base: &SharedLoaded) -> (Vec<Key>, Arc<Vectors>) {
    let live: HashSet<&Key> = base.keys.iter().collect();
    let Ok(mut kept) = Vectors::new(rows.dimension()) else { return (Vec::new(), rows.clone()) };
    let places = keys.iter().enumerate().filter(|(row, key)| live.contains(key) && kept.push_row_of(rows, *row));
    let keys = places.map(|(_, key)| *key).collect();
    (keys, Arc::new(kept))
}

fn full(name: &str) -> Error {
    Error::BaseFull(format!(
        "the base \"{name}\" would have more than {VECTOR_BYTES_MAX} bytes of vectors; use another base for some of the documents"
    ))
}

/// Refuses vectors that do not fit those that are there.
fn fits(name: &str, vectors: &BaseVectors, model: &str, dimension: usize) -> Result<(), Error> {
    if vectors.segments.is_empty() || (vectors.model == model && vectors.dimension == dimension as u64) {
        return Ok(());
    }
    Err(Error::VectorsDiffer(format!(
        "the base \"{name}\" has vectors of {} numbers by {}, and the model makes vectors of {dimension} numbers as {model}; make all anew: \
         atlasctl rag rebuild {name} --vectors",
        vectors.dimension, vectors.model
    )))
}

/// Parts as one artifact, with how many rows it has; none without rows. Only those of live texts, if these are given.
fn pack(parts: &[(Vec<Key>, Arc<Vectors>)], live: Option<&HashSet<Key>>) -> Option<(Vec<u8>, usize)> {
    let dimension = parts.last()?.1.dimension();
    let mut packed = Vectors::new(dimension).ok()?;
    let (mut keys, mut seen) = (Vec::new(), HashSet::new());
    for (part_keys, rows) in parts.iter().rev().filter(|(_, rows)| rows.dimension() == dimension) {
        for (row, key) in part_keys.iter().enumerate() {
            let is_wanted = live.is_none_or(|live| live.contains(key)) && !seen.contains(key);
            if is_wanted && packed.push_row_of(rows, row) {
                seen.insert(*key);
                keys.push(*key);
            }
        }
    }
    (!keys.is_empty()).then(|| (encode(&keys, &packed), keys.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::key_of;

    fn part(rows: &[(&str, [f32; 2])]) -> (Vec<Key>, Arc<Vectors>) {
        let vectors = Vectors::from_rows(2, rows.iter().map(|(_, row)| row)).expect("directions");
        (rows.iter().map(|(text, _)| key_of(text)).collect(), Arc::new(vectors))
    }

    #[test]
    fn the_later_vector_of_a_text_stays() {
        let parts = [part(&[("a", [1.0, 0.0]), ("b", [0.0, 1.0])]), part(&[("a", [0.0, -1.0])])];
        let (bytes, rows) = pack(&parts, None).expect("rows");
        let (keys, vectors) = decode(&bytes).expect("vectors");
        assert_eq!((rows, keys), (2, vec![key_of("a"), key_of("b")]));
        assert_eq!(vectors, Vectors::from_rows(2, [[0.0, -1.0], [0.0, 1.0]]).expect("directions"));
        let live = HashSet::from([key_of("b")]);
        assert_eq!(pack(&parts, Some(&live)).map(|(_, rows)| rows), Some(1));
        assert!(pack(&parts, Some(&HashSet::new())).is_none() && pack(&[], None).is_none());
    }

    #[test]
    fn vectors_of_another_model_are_refused() {
        let segments = vec![VectorSegment::default()];
        let vectors = BaseVectors { model: "m".to_owned(), dimension: 2, segments, ..BaseVectors::default() };
        assert!(fits("b", &vectors, "m", 2).is_ok() && fits("b", &BaseVectors::default(), "n", 3).is_ok());
        assert!(fits("b", &vectors, "m", 3).is_err() && fits("b", &vectors, "n", 2).is_err());
    }
}
