//! Reads an archive from front to back. Its content is not trusted before its manifest has been verified.

use std::io::{self, Read};

use sha2::{Digest as _, Sha256};
use tar::{Archive, EntryType};

use super::{
    ABOUT, About, ArchiveError, FORMAT, HISTORY, MANIFEST, MANIFEST_SUM, Manifest, Part, STATE, artifact_of, hex, sums,
};

/// The largest size of a document in an archive. The manifest has one line per artifact.
const DOCUMENT_BYTES_MAX: u64 = 1 << 30;

/// The content of a verified archive: every part has the size and the digest stated in the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveContents {
    /// The description of the backup.
    pub about: About,
    /// Its parts.
    pub manifest: Manifest,
}

/// Reads a whole archive. `take` receives the state, the history and the artifacts as they are read, before they are
/// verified. Its results are valid only if this function succeeds. Data that `take` does not read is skipped.
pub fn read(
    input: impl Read,
    mut take: impl FnMut(&str, &mut dyn Read) -> io::Result<()>,
) -> Result<ArchiveContents, ArchiveError> {
    let mut archive = Archive::new(input);
    let mut parts = Vec::new();
    let (mut about, mut manifest, mut sum) = (None, None, None);
    for entry in archive.entries().map_err(ArchiveError::Io)? {
        let mut entry = entry.map_err(ArchiveError::Io)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let in_place = match parts.len() {
            0 => name == ABOUT,
            1 => name == STATE,
            2 => name == HISTORY,
            _ => manifest.is_none() && (name == MANIFEST || artifact_of(&name).is_some()),
        };
        let in_place = in_place || (manifest.is_some() && sum.is_none() && name == MANIFEST_SUM);
        if !in_place || entry.header().entry_type() != EntryType::Regular {
            return Err(ArchiveError::Foreign { part: name });
        }
        let mut summed = Summed { inner: &mut entry, digest: Sha256::new(), bytes: 0 };
        match name.as_str() {
            ABOUT => about = Some(read_about(&bounded(&mut summed)?)?),
            MANIFEST => manifest = Some(bounded(&mut summed)?),
            MANIFEST_SUM => sum = Some(bounded(&mut summed)?),
            _ => take(&name, &mut summed).map_err(ArchiveError::Io)?,
        }
        io::copy(&mut summed, &mut io::sink()).map_err(ArchiveError::Io)?;
        let (bytes, sha256) = (summed.bytes, hex(&summed.digest.finalize()));
        if artifact_of(&name).is_some_and(|digest| digest.hex() != sha256) {
            return Err(ArchiveError::Damaged { part: name });
        }
        parts.push(Part { name, bytes, sha256 });
    }
    let (Some(about), Some(manifest), Some(sum)) = (about, manifest, sum) else { return Err(ArchiveError::Cut) };
    let damaged = |part: &str| ArchiveError::Damaged { part: part.to_owned() };
    if !sum.ends_with(sums(&[], &manifest).as_bytes()) {
        return Err(damaged(MANIFEST));
    }
    let bytes = manifest;
    let manifest: Manifest =
        serde_json::from_slice(&bytes).map_err(|source| ArchiveError::Document { part: MANIFEST, source })?;
    // Earlier programs listed only the manifest in `manifest.sha256`.
    if ![sums(&manifest.parts, &bytes), sums(&[], &bytes)].iter().any(|sums| sum == sums.as_bytes()) {
        return Err(damaged(MANIFEST_SUM));
    }
    // The manifest does not list itself and `manifest.sha256`.
    let named = &parts[..parts.len().saturating_sub(2)];
    if named.len() != manifest.parts.len() {
        return Err(damaged(MANIFEST));
    }
    if let Some((part, _)) = named.iter().zip(&manifest.parts).find(|(found, said)| found != said) {
        return Err(damaged(&part.name));
    }
    Ok(ArchiveContents { about, manifest })
}

fn read_about(bytes: &[u8]) -> Result<About, ArchiveError> {
    let about: About =
        serde_json::from_slice(bytes).map_err(|source| ArchiveError::Document { part: ABOUT, source })?;
    if about.format > FORMAT { Err(ArchiveError::NewerFormat { found: about.format }) } else { Ok(about) }
}

fn bounded(input: &mut dyn Read) -> Result<Vec<u8>, ArchiveError> {
    let mut bytes = Vec::new();
    input.take(DOCUMENT_BYTES_MAX).read_to_end(&mut bytes).map_err(ArchiveError::Io)?;
    Ok(bytes)
}

/// Computes the digest of the bytes that are read.
struct Summed<R> {
    inner: R,
    digest: Sha256,
    bytes: u64,
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buf)?;
        self.digest.update(&buf[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}
