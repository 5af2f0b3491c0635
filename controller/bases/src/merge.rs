//! Which segments become one, and how. Sizes fall by half at least from one segment to the next, so a base that grows by small changes has few
//! segments, and each document is copied about as often as the base doubles.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use atlas_desk::Error;
use atlas_objects::{BaseSegment, BaseSpec, REMOVED_MAX, SEGMENTS_MAX};
use atlas_types::Digest;

use crate::catalogue::{Contents, Row, Unread, digest};
use crate::document::Document;
use crate::segment::{Encoder, HEAD_BYTES, SEGMENT_BYTES_MAX, line};
use crate::{BASE_BYTES_MAX, Bases};

/// How many removed documents remain in segments after a change: more are taken out of them.
const REMOVED_LEFT: usize = REMOVED_MAX / 2;

/// The place of the first segment that is joined with all after it; none if they stay as they are.
pub(crate) fn to_join(bytes: &[u64], most: u64) -> Option<usize> {
    let (mut at, mut total) = (bytes.len().checked_sub(1)?, *bytes.last()?);
    while let Some(earlier) = at.checked_sub(1).and_then(|earlier| bytes.get(earlier)) {
        if *earlier > 2 * total || earlier + total > most {
            break;
        }
        (at, total) = (at - 1, total + earlier);
    }
    (at + 1 < bytes.len()).then_some(at)
}

impl Bases {
    /// Adds documents as a segment, and joins the latest segments with it as far as they have to be.
    pub(crate) async fn append(&self, spec: &mut BaseSpec, documents: Arc<Vec<Document>>) -> Result<(), Error> {
        if documents.is_empty() {
            return Ok(());
        }
        let mut bytes: Vec<u64> = spec.segments.iter().map(|segment| segment.bytes).collect();
        // About the size that they have in a segment.
        bytes.push(documents.iter().map(|document| document.text.len() as u64 + 64).sum());
        let first = to_join(&bytes, self.segment_bytes_max()).unwrap_or(spec.segments.len());
        let joined: Vec<BaseSegment> = spec.segments.drain(first..).collect();
        self.rewrite(spec, &joined, Some(documents)).await
    }

    /// Writes the documents of segments, which are no longer in the base, and others behind them as new segments.
    pub(crate) async fn rewrite(
        &self,
        spec: &mut BaseSpec,
        joined: &[BaseSegment],
        others: Option<Arc<Vec<Document>>>,
    ) -> Result<(), Error> {
        let mut parts = Vec::new();
        for segment in joined {
            let documents = self.segment(digest(segment)?).await.map_err(|unread| lost(segment, unread))?;
            parts.push(Arc::new(documents));
        }
        parts.extend(others);
        let removed: BTreeSet<String> = spec.removed.iter().cloned().collect();
        let (segments, dropped) = self.write_segments(parts, removed).await?;
        spec.segments.extend(segments);
        spec.removed.retain(|id| !dropped.contains(id));
        Ok(())
    }

    /// Most bytes of a segment here.
    fn segment_bytes_max(&self) -> u64 {
        self.desk.artifacts.bytes_max().min(SEGMENT_BYTES_MAX as u64)
    }

    /// Writes segments anew, which are no longer in the base, one after the other: a base is larger than what is held at a time.
    pub(crate) async fn rewrite_all(&self, spec: &mut BaseSpec, segments: &[BaseSegment]) -> Result<(), Error> {
        let mut run = 0..0;
        while run.end < segments.len() {
            let bytes = |run: std::ops::Range<usize>| segments[run].iter().map(|segment| segment.bytes).sum::<u64>();
            run = run.end..run.end + 1;
            while run.end < segments.len() && bytes(run.start..run.end + 1) <= self.segment_bytes_max() {
                run.end += 1;
            }
            self.rewrite(spec, &segments[run.clone()], None).await?;
        }
        Ok(())
    }

    /// Takes removed documents out of the segments that have them, if there are many, or if the base is full.
    pub(crate) async fn compact(&self, spec: &mut BaseSpec, contents: &Contents) -> Result<(), Error> {
        if spec.removed.len() <= REMOVED_LEFT && spec.bytes() <= BASE_BYTES_MAX && spec.segments.len() <= SEGMENTS_MAX {
            return Ok(());
        }
        let known: HashMap<Digest, &[Row]> =
            contents.segments.iter().map(|(digest, catalogue)| (*digest, catalogue.as_slice())).collect();
        let removed: BTreeSet<String> = spec.removed.iter().cloned().collect();
        let mut segments = Vec::new();
        for segment in std::mem::take(&mut spec.segments) {
            let digest = digest(&segment)?;
            let has_removed = |rows: &&[Row]| rows.iter().any(|row| removed.contains(&*row.id));
            // One that was just made has none.
            if known.get(&digest).is_some_and(has_removed) {
                let documents = self.segment(digest).await.map_err(|unread| lost(&segment, unread))?;
                segments.extend(self.write_segments(vec![Arc::new(documents)], removed.clone()).await?.0);
            } else {
                segments.push(segment);
            }
        }
        spec.segments = segments;
        spec.removed.clear();
        if spec.segments.len() > SEGMENTS_MAX {
            // Segments that shrank are no longer about half as large as the one before.
            let all = std::mem::take(&mut spec.segments);
            self.rewrite_all(spec, &all).await?;
        }
        Ok(())
    }

    /// Writes documents to as few segments as they need, without those that are removed. The second answer is which of these were there.
    async fn write_segments(
        &self,
        parts: Vec<Arc<Vec<Document>>>,
        removed: BTreeSet<String>,
    ) -> Result<(Vec<BaseSegment>, BTreeSet<String>), Error> {
        let most = usize::try_from(self.segment_bytes_max()).unwrap_or(SEGMENT_BYTES_MAX);
        let packed = self.off(move || pack(&parts, &removed, most)).await?;
        let (packs, dropped) = packed.map_err(|error| Error::internal("write a segment", &error))?;
        let mut segments = Vec::new();
        for Pack { rows, bytes } in packs {
            let size = bytes.len() as u64;
            let digest = self.store(bytes).await?;
            segments.push(BaseSegment { digest: digest.hex(), documents: rows.len() as u64, bytes: size });
            self.catalogues.keep(digest, &Arc::new(rows));
        }
        Ok((segments, dropped))
    }
}

/// A segment that is to be stored.
struct Pack {
    rows: Vec<Row>,
    bytes: Vec<u8>,
}

fn pack(
    parts: &[Arc<Vec<Document>>],
    removed: &BTreeSet<String>,
    most: usize,
) -> Result<(Vec<Pack>, BTreeSet<String>), serde_json::Error> {
    let (mut packs, mut dropped) = (Vec::new(), BTreeSet::new());
    let (mut encoder, mut rows) = (Encoder::default(), Vec::new());
    for document in parts.iter().flat_map(|part| part.iter()) {
        let row = Row::of(document);
        if removed.contains(&*row.id) {
            dropped.insert(row.id.to_string());
            continue;
        }
        let line = line(document)?;
        if encoder.bytes() + line.len() + HEAD_BYTES > most && encoder.documents() > 0 {
            packs.push(Pack { rows: std::mem::take(&mut rows), bytes: std::mem::take(&mut encoder).finish() });
        }
        encoder.push(&line);
        rows.push(row);
    }
    if encoder.documents() > 0 {
        packs.push(Pack { rows, bytes: encoder.finish() });
    }
    Ok((packs, dropped))
}

/// The error of a change that needs a segment.
pub(crate) fn lost(segment: &BaseSegment, unread: Unread) -> Error {
    match unread {
        Unread::Error(error) => error,
        Unread::Lost(why) => Error::SegmentUnreadable(format!("segment {} cannot be read: {why}", segment.digest)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_latest_segments_are_joined() {
        let mib = 1 << 20;
        for (bytes, first) in [
            (vec![], None),
            (vec![5], None),
            (vec![5, 5], Some(0)),
            (vec![10, 5], Some(0)),
            (vec![11, 5], None),
            (vec![100, 11, 5, 5], Some(1)),
            (vec![100, 30, 10, 10], Some(0)),
            (vec![20 * mib, 13 * mib], None),
            (vec![20 * mib, 12 * mib], Some(0)),
        ] {
            assert_eq!(to_join(&bytes, 32 * mib), first, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn a_full_base_has_few_segments(sizes in proptest::collection::vec(1_u64..(16 << 20), 1..400)) {
            let mut bytes: Vec<u64> = Vec::new();
            for size in sizes {
                if bytes.iter().sum::<u64>() + size > BASE_BYTES_MAX {
                    break;
                }
                bytes.push(size);
                if let Some(first) = to_join(&bytes, SEGMENT_BYTES_MAX as u64) {
                    let joined = bytes.drain(first..).sum();
                    bytes.push(joined);
                }
                prop_assert!(bytes.len() <= SEGMENTS_MAX, "{bytes:?}");
            }
        }
    }
}
