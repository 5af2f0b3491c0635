//! The artifact store: packages and large payloads by digest, in a directory.
//!
//! `artifacts/ab/cdef…` is named by the SHA-256 of its bytes. A file is there whole or not at all, and what is read is checked against
//! its name, so that a damaged disk is noticed and never believed.

use std::io;
use std::path::{Path, PathBuf};

use atlas_env::Env;
use atlas_types::Digest;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};

/// Why an artifact could not be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// It is not here.
    #[error("there is no artifact {0}")]
    Missing(Digest),
    /// Its bytes are not what its name says.
    #[error("artifact {0} is damaged")]
    Damaged(Digest),
    /// It is larger than allowed.
    #[error("an artifact of {bytes} bytes is larger than {max}")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The bound.
        max: u64,
    },
    /// The disk refused.
    #[error("could not {doing} artifact {digest}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// Which artifact.
        digest: Digest,
        /// What the system says.
        source: io::Error,
    },
    /// The process is stopping.
    #[error("the artifact store has stopped")]
    Stopped,
}

/// The digest of some bytes.
pub fn digest_of(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// A directory of artifacts. Cheap to clone.
#[derive(Clone)]
pub struct Artifacts {
    root: PathBuf,
    bytes_max: u64,
    env: Env,
}

impl Artifacts {
    /// A store below `root` that takes artifacts of up to `bytes_max` bytes.
    pub fn new(root: PathBuf, bytes_max: u64, env: Env) -> Self {
        Self { root, bytes_max, env }
    }

    /// The size of the largest artifact.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Stores bytes durably and returns their name. Storing what is there already costs one look.
    pub async fn store(&self, bytes: Bytes) -> Result<Digest, ArtifactError> {
        let size = bytes.len() as u64;
        if size > self.bytes_max {
            return Err(ArtifactError::TooLarge { bytes: size, max: self.bytes_max });
        }
        let store = self.clone();
        let task = self.env.spawn_blocking("artifact-store", move || store.write(&bytes));
        task.join().await.map_err(|_| ArtifactError::Stopped)?
    }

    /// Reads an artifact and checks it.
    pub async fn read(&self, digest: Digest) -> Result<Bytes, ArtifactError> {
        let store = self.clone();
        let task = self.env.spawn_blocking("artifact-read", move || store.read_checked(digest));
        task.join().await.map_err(|_| ArtifactError::Stopped)?
    }

    fn path(&self, digest: &Digest) -> (PathBuf, PathBuf) {
        let hex = digest.hex();
        let (head, tail) = hex.split_at(2);
        let dir = self.root.join(head);
        let path = dir.join(tail);
        (dir, path)
    }

    fn write(&self, bytes: &[u8]) -> Result<Digest, ArtifactError> {
        let digest = digest_of(bytes);
        let failed = |doing| move |source| ArtifactError::Io { doing, digest, source };
        let (dir, path) = self.path(&digest);
        if self.env.files.size(&path).map_err(failed("look for"))? == Some(bytes.len() as u64) {
            return Ok(digest);
        }
        self.env.files.create_dir_all(&dir).map_err(failed("make room for"))?;
        self.env.files.write_durably(&path, bytes).map_err(failed("store"))?;
        sync_dir(&self.root).map_err(failed("store"))?;
        Ok(digest)
    }

    fn read_checked(&self, digest: Digest) -> Result<Bytes, ArtifactError> {
        let failed = |doing| move |source| ArtifactError::Io { doing, digest, source };
        let (_, path) = self.path(&digest);
        let size = self.env.files.size(&path).map_err(failed("look for"))?.ok_or(ArtifactError::Missing(digest))?;
        if size > self.bytes_max {
            return Err(ArtifactError::TooLarge { bytes: size, max: self.bytes_max });
        }
        let bytes = self.env.files.read(&path).map_err(failed("read"))?;
        if digest_of(&bytes) == digest { Ok(bytes.into()) } else { Err(ArtifactError::Damaged(digest)) }
    }
}

/// Makes the entry of a new sub-directory durable.
fn sync_dir(dir: &Path) -> io::Result<()> {
    std::fs::File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Artifacts) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let artifacts = Artifacts::new(dir.path().join("artifacts"), 1024, Env::system());
        (dir, artifacts)
    }

    #[tokio::test]
    async fn what_is_stored_reads_back_under_its_digest() {
        let (dir, artifacts) = store();
        let digest = artifacts.store(Bytes::from_static(b"abc")).await.expect("stored");
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.hex(), hex);
        assert!(dir.path().join("artifacts/ba").join(&hex[2..]).exists());
        assert_eq!(artifacts.store(Bytes::from_static(b"abc")).await.expect("stored again"), digest);
        assert_eq!(artifacts.read(digest).await.expect("read"), "abc");
    }

    #[tokio::test]
    async fn damage_is_noticed() {
        let (dir, artifacts) = store();
        let digest = artifacts.store(Bytes::from_static(b"abc")).await.expect("stored");
        let path = dir.path().join("artifacts/ba").join(&digest.hex()[2..]);
        std::fs::write(path, b"abd").expect("writable");
        let error = artifacts.read(digest).await.expect_err("damaged");
        assert!(matches!(error, ArtifactError::Damaged(_)), "{error}");
    }

    #[tokio::test]
    async fn missing_and_oversized_artifacts_are_refused() {
        let (_dir, artifacts) = store();
        let error = artifacts.read(Digest([0; 32])).await.expect_err("missing");
        assert!(matches!(error, ArtifactError::Missing(_)), "{error}");
        let error = artifacts.store(Bytes::from(vec![0; 1025])).await.expect_err("too large");
        assert_eq!(error.to_string(), "an artifact of 1025 bytes is larger than 1024");
    }
}
