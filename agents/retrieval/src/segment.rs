//! Segments: immutable files of documents in chunks, with their vectors.
//!
//! A build writes segments and never changes one. What is removed later is a list of digests beside them, see [`crate::Base`].

use std::fmt;

use serde_json::{Map, Value};

use crate::{VectorError, Vectors};

mod decode;
mod encode;

/// Bounds of a segment.
pub(crate) const BYTES_MAX: usize = 1 << 30;
pub(crate) const DOCUMENTS_MAX: usize = 1 << 20;
pub(crate) const CHUNKS_MAX: usize = 1 << 22;
pub(crate) const SOURCE_BYTES_MAX: usize = 4 << 10;
pub(crate) const METADATA_BYTES_MAX: usize = 64 << 10;
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 20;

/// What tells one version of a document from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of a document: of its content and its source, because two documents with the same content are removed apart.
    pub fn of(source: &str, content: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(source.len() as u64).to_le_bytes());
        hasher.update(source.as_bytes());
        hasher.update(content);
        Self(*hasher.finalize().as_bytes())
    }
}

impl fmt::Display for Digest {
    /// 64 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A document of a segment.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceDocument {
    pub digest: Digest,
    /// Its path or address, at most 4 KiB.
    pub source: String,
    /// What rules may ask about, at most 64 KiB as JSON.
    pub metadata: Map<String, Value>,
}

/// Why a segment cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    #[error("the source of a document has {bytes} bytes; at most {SOURCE_BYTES_MAX} are allowed")]
    SourceSize { bytes: usize },
    #[error("the metadata of \"{source_name}\" have {bytes} bytes; at most {METADATA_BYTES_MAX} are allowed")]
    MetadataSize { source_name: String, bytes: usize },
    #[error("a chunk of \"{source_name}\" has {bytes} bytes; at most {TEXT_BYTES_MAX} are allowed")]
    TextSize { source_name: String, bytes: usize },
    #[error(
        "a segment has at most {DOCUMENTS_MAX} documents, {CHUNKS_MAX} chunks and {BYTES_MAX} bytes; begin another one"
    )]
    Full,
    #[error("\"{source_name}\" {have}, but the segment is {wanted}", have = vectors(*.found), wanted = made(*.dimension))]
    Vectors { source_name: String, found: Option<usize>, dimension: Option<usize> },
    #[error("\"{source_name}\"")]
    Vector { source_name: String, source: VectorError },
    #[error("a segment is {found}, but the first one is {wanted}; build them with one model", found = made(*.found), wanted = made(*.wanted))]
    Model { wanted: Option<usize>, found: Option<usize> },
    #[error("no segment: it begins with other bytes")]
    Magic,
    #[error("a segment of version {version}; this program reads version {known}")]
    Version { version: u32, known: u32 },
    #[error("a segment of {bytes} bytes; at most {BYTES_MAX} are read")]
    Size { bytes: usize },
    #[error("a damaged segment: its checksum is {found:08x} instead of {wanted:08x}")]
    Checksum { wanted: u32, found: u32 },
    #[error("a damaged segment: {what} at byte {at}")]
    Damaged { what: &'static str, at: usize },
}

fn vectors(found: Option<usize>) -> String {
    found.map_or_else(|| "has no vectors".to_owned(), |found| format!("has {found} vectors for its chunks"))
}

fn made(dimension: Option<usize>) -> String {
    dimension.map_or_else(|| "without vectors".to_owned(), |dimension| format!("with vectors of {dimension} numbers"))
}

/// Documents in chunks, with a vector for each chunk or for none.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    pub(crate) documents: Vec<SourceDocument>,
    /// For each chunk, the number of its document; never less than that of the chunk before.
    pub(crate) owners: Vec<u32>,
    pub(crate) texts: Vec<String>,
    pub(crate) vectors: Option<Vectors>,
    /// The bytes that the documents and chunks take in a file.
    bytes: usize,
}

impl Segment {
    /// An empty segment: with the numbers of a vector, or `None` for a segment without vectors.
    pub fn new(dimension: Option<usize>) -> Result<Self, VectorError> {
        let vectors = dimension.map(Vectors::new).transpose()?;
        Ok(Self { documents: Vec::new(), owners: Vec::new(), texts: Vec::new(), vectors, bytes: 0 })
    }

    /// Adds a document with its chunks and their vectors. After an error nothing has changed; after [`SegmentError::Full`] the document
    /// belongs into the next segment.
    pub fn add(
        &mut self,
        document: SourceDocument,
        texts: Vec<String>,
        vectors: Option<&[Vec<f32>]>,
    ) -> Result<(), SegmentError> {
        let source_name = || document.source.chars().take(256).collect::<String>();
        let metadata = encode::metadata(&document.metadata);
        if document.source.len() > SOURCE_BYTES_MAX {
            return Err(SegmentError::SourceSize { bytes: document.source.len() });
        }
        if metadata.len() > METADATA_BYTES_MAX {
            return Err(SegmentError::MetadataSize { source_name: source_name(), bytes: metadata.len() });
        }
        if let Some(text) = texts.iter().find(|text| text.len() > TEXT_BYTES_MAX) {
            return Err(SegmentError::TextSize { source_name: source_name(), bytes: text.len() });
        }
        let bytes = self.bytes
            + encode::document_bytes(&document.source, &metadata)
            + texts.iter().map(|text| encode::chunk_bytes(text, self.dimension())).sum::<usize>();
        let is_full = self.documents.len() >= DOCUMENTS_MAX
            || self.texts.len() + texts.len() > CHUNKS_MAX
            || bytes > BYTES_MAX - encode::FRAME_BYTES;
        if is_full {
            return Err(SegmentError::Full);
        }
        let rows = match (self.dimension(), vectors) {
            (None, None) => None,
            (Some(dimension), Some(rows)) if rows.len() == texts.len() => {
                let rows = Vectors::from_rows(dimension, rows);
                Some(rows.map_err(|source| SegmentError::Vector { source_name: source_name(), source })?)
            }
            (dimension, rows) => {
                return Err(SegmentError::Vectors {
                    source_name: source_name(),
                    found: rows.map(<[_]>::len),
                    dimension,
                });
            }
        };
        let owner = u32::try_from(self.documents.len()).map_err(|_| SegmentError::Full)?;
        if let (Some(all), Some(rows)) = (&mut self.vectors, rows) {
            all.append(&rows);
        }
        self.bytes = bytes;
        self.owners.extend(texts.iter().map(|_| owner));
        self.texts.extend(texts);
        self.documents.push(document);
        Ok(())
    }

    /// How many numbers its vectors have; `None` if it has no vectors.
    pub fn dimension(&self) -> Option<usize> {
        self.vectors.as_ref().map(Vectors::dimension)
    }

    /// Its documents, in the order in which they were added.
    pub fn documents(&self) -> &[SourceDocument] {
        &self.documents
    }

    /// How many chunks it has.
    pub fn chunks(&self) -> usize {
        self.texts.len()
    }

    /// The bytes of its file.
    pub fn bytes(&self) -> usize {
        self.bytes + encode::FRAME_BYTES
    }
}

#[cfg(test)]
mod tests;
