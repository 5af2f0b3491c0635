//! Writes an archive part by part, independent of the destination.

use atlas_types::Digest;
use sha2::{Digest as _, Sha256};
use tar::{EntryType, Header};

use super::{About, MANIFEST, MANIFEST_SUM, Manifest, Part, hex, sums};

const BLOCK_BYTES: u64 = 512;

/// A part does not have its announced size. The archive is unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{part}\" does not have the announced size")]
pub struct WrongLength {
    pub part: String,
}

/// Produces the bytes around the parts. The archive consists of the returned bytes and of the data passed in, in that
/// order.
#[derive(Debug)]
pub struct Encoder {
    manifest: Manifest,
    taken_at: u64,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    name: String,
    announced: u64,
    bytes: u64,
    digest: Sha256,
}

impl Encoder {
    /// Starts an archive and returns its first bytes.
    pub fn new(about: &About) -> (Self, Vec<u8>) {
        let mut encoder = Self { manifest: Manifest::default(), taken_at: about.taken_at, open: None };
        let document = document(about);
        let first = encoder.whole(super::ABOUT, &document);
        (encoder, first)
    }

    /// Starts a part of `bytes` bytes.
    pub fn begin(&mut self, name: &str, bytes: u64) -> Vec<u8> {
        self.open = Some(Open { name: name.to_owned(), announced: bytes, bytes: 0, digest: Sha256::new() });
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o600);
        header.set_mtime(self.taken_at);
        header.set_size(bytes);
        // Part names are created by this program and are short enough.
        if header.set_path(name).is_err() {
            header.as_mut_bytes()[..100].fill(0);
        }
        header.set_cksum();
        header.as_bytes().to_vec()
    }

    /// Records the next data of the part. The caller writes the data to the archive.
    pub fn data(&mut self, bytes: &[u8]) {
        if let Some(open) = &mut self.open {
            open.bytes += bytes.len() as u64;
            open.digest.update(bytes);
        }
    }

    /// Ends the part.
    pub fn end(&mut self) -> Result<Vec<u8>, WrongLength> {
        let Some(open) = self.open.take() else { return Ok(Vec::new()) };
        if open.bytes != open.announced {
            return Err(WrongLength { part: open.name });
        }
        let sha256 = hex(&open.digest.finalize());
        self.manifest.parts.push(Part { name: open.name, bytes: open.bytes, sha256 });
        Ok(vec![0; padding(open.bytes)])
    }

    /// Ends the archive. `missing` lists the artifacts that were not available.
    pub fn finish(mut self, missing: &[Digest]) -> Vec<u8> {
        self.manifest.missing = missing.iter().map(Digest::hex).collect();
        let manifest = document(&self.manifest);
        let sums = sums(&self.manifest.parts, &manifest);
        let mut last = self.whole(MANIFEST, &manifest);
        last.extend(self.whole(MANIFEST_SUM, sums.as_bytes()));
        last.extend([0; 2 * BLOCK_BYTES as usize]);
        last
    }

    /// Encodes a part whose content is complete.
    fn whole(&mut self, name: &str, bytes: &[u8]) -> Vec<u8> {
        let mut all = self.begin(name, bytes.len() as u64);
        self.data(bytes);
        all.extend_from_slice(bytes);
        // The part has the announced size, so this cannot fail.
        all.extend(self.end().unwrap_or_default());
        all
    }
}

fn padding(bytes: u64) -> usize {
    (bytes.next_multiple_of(BLOCK_BYTES) - bytes) as usize
}

/// Encodes a document in a readable form.
fn document<T: serde::Serialize>(value: &T) -> Vec<u8> {
    // Serialising plain structures of texts and numbers cannot fail.
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
    text.push(b'\n');
    text
}
