use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn document(source: &str, metadata: &Value) -> SourceDocument {
    let metadata = metadata.as_object().cloned().unwrap_or_default();
    SourceDocument { digest: Digest::of(source, b"content"), source: source.to_owned(), metadata }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn segment() -> Segment {
    let mut segment = Segment::new(Some(2)).expect("a dimension");
    let rows = [vec![1.0, 0.0], vec![0.3, -0.4]];
    segment.add(document("a.md", &json!({"team": "tides"})), texts(&["The moon.", "Ünd."]), Some(&rows)).expect("fits");
    segment.add(document("empty.md", &json!({})), Vec::new(), Some(&[])).expect("fits");
    segment.add(document("b.md", &json!({})), texts(&["Sun"]), Some(&rows[..1])).expect("fits");
    segment
}

fn shown(result: Result<Segment, SegmentError>) -> String {
    let chain = |error: SegmentError| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        format!("{error}{}", cause.unwrap_or_default())
    };
    result.map_or_else(chain, |segment| format!("{} documents, {} chunks", segment.documents.len(), segment.chunks()))
}

#[test]
fn a_segment_is_read_as_it_was_written() {
    let bytes = segment().encode();
    assert_eq!(bytes.len(), segment().bytes());
    assert_eq!(Segment::decode(&bytes).expect("whole"), segment());
    // The format: bytes that were written are read by every later version.
    expect!["243 44010d74a5bc1543796b5487756c80229a813c97c2a9abd34edb761d2392343b"].assert_eq(&format!(
        "{} {}",
        bytes.len(),
        blake3::hash(&bytes)
    ));
    let empty = Segment::new(None).expect("no vectors");
    assert_eq!(Segment::decode(&empty.encode()).expect("whole"), empty);
}

fn check_add(document: &SourceDocument, texts: Vec<String>, vectors: Option<&[Vec<f32>]>, expected: &Expect) {
    let mut segment = segment();
    let result = segment.add(document.clone(), texts, vectors);
    assert_eq!(segment, self::segment(), "nothing has changed");
    expected.assert_eq(&shown(result.map(|()| segment)));
}

#[test]
fn what_a_segment_cannot_have_is_named() {
    let a = document("a", &json!({}));
    check_add(
        &document(&"x".repeat(5000), &json!({})),
        Vec::new(),
        Some(&[]),
        &expect!["the source of a document has 5000 bytes; at most 4096 are allowed"],
    );
    check_add(
        &document("a", &json!({"x": "y".repeat(70_000)})),
        Vec::new(),
        Some(&[]),
        &expect![[r#"the metadata of "a" have 70008 bytes; at most 65536 are allowed"#]],
    );
    check_add(
        &a,
        vec!["x".repeat(2 << 20)],
        Some(&[vec![1.0, 1.0]]),
        &expect![[r#"a chunk of "a" has 2097152 bytes; at most 1048576 are allowed"#]],
    );
    check_add(
        &a,
        texts(&["x"]),
        None,
        &expect![[r#""a" has no vectors, but the segment is with vectors of 2 numbers"#]],
    );
    check_add(
        &a,
        texts(&["x"]),
        Some(&[]),
        &expect![[r#""a" has 0 vectors for its chunks, but the segment is with vectors of 2 numbers"#]],
    );
    check_add(
        &a,
        texts(&["x"]),
        Some(&[vec![1.0]]),
        &expect![[r#""a": vector 0 has 1 numbers instead of 2; another model made it"#]],
    );
    check_add(
        &a,
        texts(&["x", "y"]),
        Some(&[vec![1.0, 2.0], vec![f32::NAN, 0.0]]),
        &expect![[r#""a": vector 1: number 0 is NaN"#]],
    );
    let mut plain = Segment::new(None).expect("no vectors");
    let result = plain.add(a, texts(&["x"]), Some(&[vec![1.0]]));
    expect![[r#""a" has 1 vectors for its chunks, but the segment is without vectors"#]]
        .assert_eq(&shown(result.map(|()| plain)));
}

fn check(bytes: &[u8], expected: &Expect) {
    expected.assert_eq(&shown(Segment::decode(bytes)));
}

/// The bytes of the segment with a number changed and a checksum that fits.
fn with(at: usize, number: u32) -> Vec<u8> {
    let mut bytes = segment().encode();
    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
    sealed(bytes)
}

fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let body = bytes.len() - 4;
    let checksum = crc32c::crc32c(&bytes[..body]);
    bytes[body..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn damaged_segments_are_refused() {
    let whole = segment().encode();
    check(b"", &expect!["no segment: it begins with other bytes"]);
    check(b"atlasseh", &expect!["no segment: it begins with other bytes"]);
    check(&whole[..10], &expect!["a damaged segment: it ends at byte 8"]);
    check(&whole[..20], &expect!["a damaged segment: it ends at byte 12"]);
    check(&with(8, 2), &expect!["a segment of version 2; this program reads version 1"]);
    check(&whole[..whole.len() - 1], &expect!["a damaged segment: its checksum is 6ca80900 instead of 64d27f53"]);
    let mut flipped = whole.clone();
    flipped[40] ^= 1;
    check(&flipped, &expect!["a damaged segment: its checksum is 106ca809 instead of cadd85d8"]);
    check(&with(12, 9000), &expect!["a damaged segment: too many chunks at byte 24"]);
    check(&with(12, 0), &expect!["a damaged segment: more bytes than it tells at byte 221"]);
    check(&with(16, u32::MAX), &expect!["a damaged segment: too many documents at byte 20"]);
    check(&with(16, 2), &expect!["a damaged segment: a chunk without a document at byte 138"]);
    check(&with(20, u32::MAX), &expect!["a damaged segment: too many chunks at byte 24"]);
    check(&with(20, 2), &expect!["a damaged segment: a vector without a direction at byte 216"]);
    check(&with(56, u32::MAX), &expect!["a damaged segment: a source too long at byte 60"]);
    let mut more = whole;
    more.extend_from_slice(&[0; 4]);
    check(&sealed(more), &expect!["a damaged segment: more bytes than it tells at byte 239"]);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Segment::decode(&bytes);
        let mut framed = b"atlasseg\x01\0\0\0".to_vec();
        framed.extend(bytes);
        framed.extend([0; 4]);
        let _ = Segment::decode(&sealed(framed));
    }

    #[test]
    fn changed_bytes_are_refused(at in any::<prop::sample::Index>(), change in 1_u8..) {
        let mut bytes = segment().encode();
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        prop_assert!(Segment::decode(&bytes).is_err());
    }

    #[test]
    fn changed_bytes_with_a_fitting_checksum_are_read_or_refused(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = segment().encode();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len()).max(4));
        if let Ok(read) = Segment::decode(&sealed(bytes.clone())) {
            // JSON may have been written in another way.
            prop_assert!(read.encode().len() <= bytes.len());
        }
    }

    #[test]
    fn what_was_added_is_read(
        documents in proptest::collection::vec((any::<String>(), proptest::collection::vec(any::<String>(), 0..4)), 0..6),
    ) {
        let mut segment = Segment::new(Some(3)).expect("a dimension");
        for (source, texts) in documents {
            let rows: Vec<Vec<f32>> = texts.iter().map(|text| vec![1.0, text.len() as f32, -0.5]).collect();
            segment.add(document(&source, &json!({"source": source})), texts, Some(&rows)).expect("fits");
        }
        let bytes = segment.encode();
        prop_assert_eq!(bytes.len(), segment.bytes());
        prop_assert_eq!(Segment::decode(&bytes).expect("whole"), segment);
    }
}
