//! The bytes of a segment. All numbers are little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `atlasseg` |
//! | 4 | the version of the format, 1 |
//! | 4 | the numbers of a vector, 0 without vectors |
//! | 4, 4 | documents, chunks |
//! | each document | digest (32), length and bytes of the source, length and bytes of the metadata as JSON |
//! | each chunk | number of its document, length and bytes of the text |
//! | each chunk, with vectors | scale (a float of 4 bytes), then a byte for each number |
//! | 4 | CRC-32C of all bytes before |

use serde_json::{Map, Value};

use super::Segment;

pub(super) const MAGIC: &[u8; 8] = b"atlasseg";
pub(super) const VERSION: u32 = 1;

/// The bytes around documents and chunks: those before them, and the checksum.
pub(super) const FRAME_BYTES: usize = MAGIC.len() + 4 * 4 + 4;

/// The bytes of a document in a segment.
pub(super) fn document_bytes(source: &str, metadata: &str) -> usize {
    32 + 4 + source.len() + 4 + metadata.len()
}

/// The bytes of a chunk in a segment.
pub(super) fn chunk_bytes(text: &str, dimension: Option<usize>) -> usize {
    4 + 4 + text.len() + dimension.map_or(0, |dimension| 4 + dimension)
}

/// Metadata as they are written.
pub(super) fn metadata(metadata: &Map<String, Value>) -> String {
    serde_json::to_string(metadata).unwrap_or_default()
}

impl Segment {
    /// The bytes of its file: the same for the same documents, chunks and vectors.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes());
        bytes.extend_from_slice(MAGIC);
        for number in [VERSION as usize, self.dimension().unwrap_or_default(), self.documents.len(), self.texts.len()] {
            push_number(&mut bytes, number);
        }
        for document in &self.documents {
            bytes.extend_from_slice(&document.digest.0);
            push_text(&mut bytes, &document.source);
            push_text(&mut bytes, &metadata(&document.metadata));
        }
        for (owner, text) in self.owners.iter().zip(&self.texts) {
            bytes.extend_from_slice(&owner.to_le_bytes());
            push_text(&mut bytes, text);
        }
        if let Some(vectors) = &self.vectors {
            for (numbers, scale) in (0..vectors.len()).filter_map(|row| vectors.row(row)) {
                bytes.extend_from_slice(&scale.to_le_bytes());
                bytes.extend(numbers.iter().map(|number| number.to_le_bytes()[0]));
            }
        }
        let checksum = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }
}

/// A length, which the bounds of a segment keep within 32 bits.
fn push_number(bytes: &mut Vec<u8>, number: usize) {
    bytes.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    push_number(bytes, text.len());
    bytes.extend_from_slice(text.as_bytes());
}
