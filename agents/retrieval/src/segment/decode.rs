//! Reading the bytes of a segment. Nothing is allocated for a number before as many bytes are there.

use serde_json::{Map, Value};

use super::encode::{FRAME_BYTES, MAGIC, VERSION, chunk_bytes, document_bytes};
use super::{
    BYTES_MAX, CHUNKS_MAX, DOCUMENTS_MAX, Digest, METADATA_BYTES_MAX, SOURCE_BYTES_MAX, Segment, SegmentError,
    SourceDocument, TEXT_BYTES_MAX,
};
use crate::Vectors;

impl Segment {
    /// Reads the bytes of a file. What is damaged, of another version or too large is an error, whatever the bytes are.
    pub fn decode(bytes: &[u8]) -> Result<Self, SegmentError> {
        if bytes.len() > BYTES_MAX {
            return Err(SegmentError::Size { bytes: bytes.len() });
        }
        let mut head = Reader { bytes, at: 0 };
        if head.take(MAGIC.len(), "it ends").ok() != Some(MAGIC.as_slice()) {
            return Err(SegmentError::Magic);
        }
        let version = head.number()?;
        if version != VERSION {
            return Err(SegmentError::Version { version, known: VERSION });
        }
        let body = bytes.len().checked_sub(4).filter(|_| bytes.len() >= FRAME_BYTES);
        let (body, checksum) =
            body.and_then(|body| bytes.split_at_checked(body)).ok_or_else(|| head.damaged("it ends"))?;
        let wanted = crc32c::crc32c(body);
        let found = checksum.try_into().map_or(0, u32::from_le_bytes);
        if wanted != found {
            return Err(SegmentError::Checksum { wanted, found });
        }
        let mut reader = Reader { bytes: body, at: head.at };
        let segment = reader.segment()?;
        match reader.at == body.len() {
            true => Ok(segment),
            false => Err(reader.damaged("more bytes than it tells")),
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn segment(&mut self) -> Result<Segment, SegmentError> {
        let dimension = self.length()?;
        let dimension = (dimension > 0).then_some(dimension);
        let documents = self.count(DOCUMENTS_MAX, document_bytes("", ""), "too many documents")?;
        let chunks = self.count(CHUNKS_MAX, chunk_bytes("", dimension), "too many chunks")?;
        let mut segment = Segment::new(dimension).map_err(|_| self.damaged("vectors too long"))?;
        segment.documents.reserve_exact(documents);
        for _ in 0..documents {
            segment.documents.push(self.document()?);
        }
        segment.owners.reserve_exact(chunks);
        segment.texts.reserve_exact(chunks);
        for _ in 0..chunks {
            let owner = self.number()?;
            let is_sorted = segment.owners.last().is_none_or(|before| *before <= owner);
            if owner as usize >= documents || !is_sorted {
                return Err(self.damaged("a chunk without a document"));
            }
            segment.owners.push(owner);
            segment.texts.push(self.text(TEXT_BYTES_MAX, "a chunk too long")?);
        }
        if let Some(vectors) = &mut segment.vectors {
            self.vectors(vectors, chunks)?;
        }
        segment.bytes = self.at - (FRAME_BYTES - 4);
        Ok(segment)
    }

    fn document(&mut self) -> Result<SourceDocument, SegmentError> {
        let digest = self.take(32, "it ends")?.try_into().map_err(|_| self.damaged("it ends"))?;
        let source = self.text(SOURCE_BYTES_MAX, "a source too long")?;
        let metadata = self.text(METADATA_BYTES_MAX, "metadata too long")?;
        let metadata: Map<String, Value> =
            serde_json::from_str(&metadata).map_err(|_| self.damaged("metadata that are no JSON object"))?;
        Ok(SourceDocument { digest: Digest(digest), source, metadata })
    }

    fn vectors(&mut self, vectors: &mut Vectors, rows: usize) -> Result<(), SegmentError> {
        let mut numbers = Vec::with_capacity(vectors.dimension());
        for _ in 0..rows {
            let scale = self.take(4, "it ends")?.try_into().map_or(0.0, f32::from_le_bytes);
            numbers.clear();
            let row = self.take(vectors.dimension(), "it ends")?;
            numbers.extend(row.iter().map(|byte| i8::from_le_bytes([*byte])));
            vectors.push_stored(&numbers, scale).ok_or_else(|| self.damaged("a vector without a direction"))?;
        }
        Ok(())
    }

    /// A number of things that each take some bytes, which must be there.
    fn count(&mut self, most: usize, each: usize, what: &'static str) -> Result<usize, SegmentError> {
        let count = self.length()?;
        let left = self.bytes.len().saturating_sub(self.at);
        match count <= most && count.saturating_mul(each) <= left {
            true => Ok(count),
            false => Err(self.damaged(what)),
        }
    }

    fn text(&mut self, most: usize, what: &'static str) -> Result<String, SegmentError> {
        let length = self.length()?;
        if length > most {
            return Err(self.damaged(what));
        }
        let bytes = self.take(length, "it ends")?;
        let text = str::from_utf8(bytes).map_err(|_| self.damaged("a text that is no UTF-8"))?;
        Ok(text.to_owned())
    }

    fn length(&mut self) -> Result<usize, SegmentError> {
        Ok(self.number()? as usize)
    }

    fn number(&mut self) -> Result<u32, SegmentError> {
        let bytes = self.take(4, "it ends")?;
        Ok(bytes.try_into().map_or(0, u32::from_le_bytes))
    }

    fn take(&mut self, length: usize, what: &'static str) -> Result<&'a [u8], SegmentError> {
        let end = self.at.checked_add(length);
        let taken = end.and_then(|end| self.bytes.get(self.at..end)).ok_or_else(|| self.damaged(what))?;
        self.at += length;
        Ok(taken)
    }

    fn damaged(&self, what: &'static str) -> SegmentError {
        SegmentError::Damaged { what, at: self.at }
    }
}
