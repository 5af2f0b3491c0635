//! Segments: documents in one artifact, a line of JSON each below a head that says how many there are. The digest of the artifact is its checksum.

use crate::document::Document;

/// The word of the format. It changes when programs of today could no longer read it.
const FORMAT: &str = "atlas-documents-1";

/// Room for the head, in bytes.
pub(crate) const HEAD_BYTES: usize = 64;

/// Most bytes of one segment: one artifact, which is read as a whole.
pub(crate) const SEGMENT_BYTES_MAX: usize = 32 << 20;

/// Why bytes are no segment.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SegmentError {
    #[error("it does not begin like a segment")]
    Head,
    #[error("line {line} cannot be read")]
    Line { line: usize, source: serde_json::Error },
    #[error("it has {found} documents, not {stated}")]
    Count { stated: usize, found: usize },
}

/// Documents, as they are appended to a segment.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    lines: Vec<u8>,
    documents: usize,
}

impl Encoder {
    /// Adds a line of [`line`].
    pub(crate) fn push(&mut self, line: &[u8]) {
        self.lines.extend_from_slice(line);
        self.lines.push(b'\n');
        self.documents += 1;
    }

    pub(crate) fn documents(&self) -> usize {
        self.documents
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lines.len()
    }

    /// The bytes of the segment.
    pub(crate) fn finish(self) -> Vec<u8> {
        let mut bytes = format!("{FORMAT} {}\n", self.documents).into_bytes();
        bytes.extend(self.lines);
        bytes
    }
}

/// The line of a document.
pub(crate) fn line(document: &Document) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(document)
}

/// The documents of a segment, in order.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<Document>, SegmentError> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let head = lines.next().and_then(|head| std::str::from_utf8(head).ok()).unwrap_or_default();
    let stated = head.strip_prefix(FORMAT).and_then(|count| count.strip_prefix(' ')?.parse::<usize>().ok());
    let stated = stated.ok_or(SegmentError::Head)?;
    let mut documents = Vec::new();
    for (at, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
        let read = |source| SegmentError::Line { line: at + 2, source };
        documents.push(serde_json::from_slice(line).map_err(read)?);
    }
    match documents.len() {
        found if found == stated => Ok(documents),
        found => Err(SegmentError::Count { stated, found }),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn encoded(texts: &[String]) -> (Vec<Document>, Vec<u8>) {
        let document = |(at, text): (usize, &String)| Document {
            source: format!("{at}.md").into(),
            metadata: serde_json::Map::new(),
            text: text.clone(),
        };
        let documents: Vec<Document> = texts.iter().enumerate().map(document).collect();
        let mut encoder = Encoder::default();
        for document in &documents {
            encoder.push(&line(document).expect("JSON"));
        }
        (documents, encoder.finish())
    }

    fn check(bytes: &[u8], expected: &Expect) {
        expected.assert_eq(&decode(bytes).map_or_else(|error| error.to_string(), |found| format!("{found:?}")));
    }

    #[test]
    fn the_format_is_fixed() {
        let (_, bytes) = encoded(&["One\ntwo".to_owned()]);
        let text = String::from_utf8(bytes).expect("UTF-8");
        expect![[r#"
            atlas-documents-1 1
            {"source":"0.md","text":"One\ntwo"}
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn other_bytes_are_refused() {
        check(b"", &expect!["it does not begin like a segment"]);
        check(b"atlas-documents-2 0\n", &expect!["it does not begin like a segment"]);
        check(b"atlas-documents-1 -1\n", &expect!["it does not begin like a segment"]);
        check(b"atlas-documents-1 2\n{\"source\":\"a\",\"text\":\"b\"}\n", &expect!["it has 1 documents, not 2"]);
        check(b"atlas-documents-1 1\n{\"source\":\"a\"", &expect!["line 2 cannot be read"]);
        check(b"atlas-documents-1 0\n", &expect!["[]"]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(texts in proptest::collection::vec(".{0,40}", 0..8)) {
            let (documents, bytes) = encoded(&texts);
            prop_assert_eq!(decode(&bytes).expect("a segment"), documents);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = decode(&bytes);
            let _ = decode(&[&b"atlas-documents-1 1\n"[..], &bytes].concat());
        }
    }
}
