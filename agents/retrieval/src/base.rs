//! Several segments as one index.

use std::collections::BTreeSet;

use crate::{Chunk, Digest, Hit, Index, Query, Segment, SegmentError, SourceDocument, VectorError, Vectors};

/// The documents of segments, without those that were removed.
#[derive(Debug, Clone)]
pub struct Base {
    documents: Vec<SourceDocument>,
    /// For each chunk of the index, the number of its document.
    owners: Vec<u32>,
    index: Index,
}

impl Base {
    /// One index of segments of one model, in their order. Documents whose digest is among those removed are left out, and of documents
    /// with the same digest all but the first. Who adds a removed document again takes its digest out of the removed ones.
    pub fn new(segments: Vec<Segment>, removed: &BTreeSet<Digest>) -> Result<Self, SegmentError> {
        let wanted = segments.first().and_then(Segment::dimension);
        if let Some(other) = segments.iter().find(|segment| segment.dimension() != wanted) {
            return Err(SegmentError::Model { wanted, found: other.dimension() });
        }
        let mut parts = Parts::default();
        let mut vectors = wanted.map(Vectors::new).transpose();
        let mut seen = removed.clone();
        for segment in segments {
            parts.add(segment, &mut seen, vectors.as_mut().ok().and_then(Option::as_mut));
        }
        let Parts { documents, owners, chunks } = parts;
        let index = match vectors {
            Ok(Some(vectors)) => Index::with_vectors(chunks, vectors),
            Ok(None) => Ok(Index::new(chunks)),
            Err(error) => Err(error),
        };
        let index = index.map_err(|source| SegmentError::Vector { source_name: "segments".to_owned(), source })?;
        Ok(Self { documents, owners, index })
    }

    /// All chunks.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The documents, without those that were removed.
    pub fn documents(&self) -> &[SourceDocument] {
        &self.documents
    }

    /// The document of a chunk.
    pub fn document(&self, chunk: u32) -> Option<&SourceDocument> {
        self.documents.get(*self.owners.get(chunk as usize)? as usize)
    }

    /// Searches the documents that the caller may read. The rule is asked once for each document, whether it fits or not.
    pub fn search(
        &self,
        question: &Query<'_>,
        may_read: &dyn Fn(&SourceDocument) -> bool,
    ) -> Result<Vec<Hit>, VectorError> {
        let readable: Vec<bool> = self.documents.iter().map(may_read).collect();
        let is_readable = |chunk: u32| {
            let owner = self.owners.get(chunk as usize).and_then(|owner| readable.get(*owner as usize));
            owner.copied().unwrap_or(false) && question.is_readable.is_none_or(|may_read| may_read(chunk))
        };
        self.index.search(&Query { is_readable: Some(&is_readable), ..*question })
    }
}

#[derive(Default)]
struct Parts {
    documents: Vec<SourceDocument>,
    owners: Vec<u32>,
    chunks: Vec<Chunk>,
}

impl Parts {
    /// Adds the documents of a segment that are not among those seen.
    fn add(&mut self, segment: Segment, seen: &mut BTreeSet<Digest>, mut vectors: Option<&mut Vectors>) {
        let Segment { documents, owners, texts, vectors: rows, .. } = segment;
        let mut places: Vec<Option<u32>> = Vec::with_capacity(documents.len());
        for document in documents {
            let place = u32::try_from(self.documents.len()).ok();
            let place = place.filter(|_| seen.insert(document.digest));
            if place.is_some() {
                self.documents.push(document);
            }
            places.push(place);
        }
        for (row, (owner, text)) in owners.into_iter().zip(texts).enumerate() {
            let Some(place) = places.get(owner as usize).copied().flatten() else { continue };
            let Some(document) = self.documents.get(place as usize) else { continue };
            if let (Some(vectors), Some((numbers, scale))) =
                (&mut vectors, rows.as_ref().and_then(|rows| rows.row(row)))
            {
                // A row of a segment was checked when it was added or read.
                let _ = vectors.push_stored(numbers, scale);
            }
            self.owners.push(place);
            self.chunks.push(Chunk { source: document.source.clone(), text });
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn segment(dimension: Option<usize>, documents: &[(&str, &str, &[&str])]) -> Segment {
        let mut segment = Segment::new(dimension).expect("a dimension");
        for (source, team, texts) in documents {
            let metadata = json!({"team": team}).as_object().cloned().unwrap_or_default();
            let digest = Digest::of(source, texts.concat().as_bytes());
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            let rows: Vec<Vec<f32>> =
                texts.iter().map(|text| vec![text.len() as f32; dimension.unwrap_or_default()]).collect();
            let document = SourceDocument { digest, source: (*source).to_owned(), metadata };
            segment.add(document, texts, dimension.map(|_| rows.as_slice())).expect("fits");
        }
        segment
    }

    fn two() -> Vec<Segment> {
        let first = segment(Some(2), &[("a.md", "red", &["The moon.", "Moon tides."]), ("b.md", "blue", &["A moon."])]);
        let second =
            segment(Some(2), &[("c.md", "red", &["Moons of ice."]), ("a.md", "red", &["The moon.", "Moon tides."])]);
        vec![first, second]
    }

    fn check(removed: &[(&str, &str)], team: &str, expected: &Expect) {
        let removed = removed.iter().map(|(source, content)| Digest::of(source, content.as_bytes())).collect();
        let base = Base::new(two(), &removed).expect("one model");
        let may_read =
            |document: &SourceDocument| team.is_empty() || document.metadata.get("team") == Some(&json!(team));
        let question = Query { vector: Some(&[1.0, 1.0]), ..Query::new("moon", 9) };
        let hits = base.search(&question, &may_read).expect("it fits");
        let line = |hit: &Hit| {
            let (document, chunk) = (base.document(hit.chunk), base.index().chunk(hit.chunk));
            format!("{:?} {:?}\n", document.map(|document| &document.source), chunk.map(|chunk| &chunk.text))
        };
        expected.assert_eq(&hits.iter().map(line).collect::<String>());
    }

    #[test]
    fn segments_are_one_index_without_what_was_removed() {
        check(
            &[],
            "",
            &expect![[r#"
            Some("a.md") Some("The moon.")
            Some("b.md") Some("A moon.")
            Some("a.md") Some("Moon tides.")
            Some("c.md") Some("Moons of ice.")
        "#]],
        );
        check(
            &[("a.md", "The moon.Moon tides.")],
            "",
            &expect![[r#"
            Some("b.md") Some("A moon.")
            Some("c.md") Some("Moons of ice.")
        "#]],
        );
        check(
            &[("a.md", "Other content.")],
            "red",
            &expect![[r#"
            Some("a.md") Some("The moon.")
            Some("a.md") Some("Moon tides.")
            Some("c.md") Some("Moons of ice.")
        "#]],
        );
        check(&[], "green", &expect![""]);
    }

    #[test]
    fn segments_of_two_models_are_refused() {
        let refused =
            |segments| Base::new(segments, &BTreeSet::new()).map_or_else(|error| error.to_string(), |_| String::new());
        expect!["a segment is with vectors of 3 numbers, but the first one is with vectors of 2 numbers; build them with one model"].assert_eq(&refused(vec![segment(Some(2), &[]), segment(Some(3), &[])]));
        expect![
            "a segment is with vectors of 3 numbers, but the first one is without vectors; build them with one model"
        ]
        .assert_eq(&refused(vec![segment(None, &[]), segment(Some(3), &[])]));
        expect![""].assert_eq(&refused(Vec::new()));
    }
}
