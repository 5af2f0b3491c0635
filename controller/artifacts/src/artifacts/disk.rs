//! The directory of artifacts: writing, reading, and holds. Blocking; [`super::Artifacts`] calls it off the async threads.
//!
//! `ab/cdef…` is named by the SHA-256 of its bytes and is complete or absent: bytes are received in `incoming/`, and
//! the file is renamed when it is durable and has the right digest. A damaged file is moved to `damaged/` once a good
//! copy is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_env::{Env, FileReader, FileWriter};
use atlas_types::Digest;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::{ArtifactError, digest_of};

/// The most damaged files that are kept for inspection.
const DAMAGED_MAX: usize = 16;

/// The directory and its holds.
pub(super) struct Disk {
    root: PathBuf,
    bytes_max: u64,
    hold: Duration,
    env: Env,
    /// Distinguishes incoming files of this process from those of earlier processes.
    boot: u64,
    next: AtomicU64,
    kept: Mutex<Kept>,
}

struct Kept {
    /// For each held artifact, the end of its hold. It is kept until then, even without references.
    until: BTreeMap<Digest, Duration>,
    /// The holds of an earlier process are unknown. Until this time every artifact is held.
    all_until: Duration,
    /// Files whose bytes do not match their digest.
    damaged: BTreeSet<Digest>,
    /// The directories of artifacts, by the first byte of their digests.
    names: BTreeMap<u8, Names>,
}

/// Whether the names in a directory are durable. This is unknown for names from an earlier process.
#[derive(Clone, Copy, Default)]
struct Names {
    /// How many names this process has added.
    given: u64,
    /// How many of them the last sync covered, if there was one.
    synced: Option<u64>,
}

impl Kept {
    fn holds(&self, digest: &Digest, now: Duration) -> bool {
        now < self.all_until || self.until.get(digest).is_some_and(|until| now < *until)
    }
}

impl Disk {
    pub(super) fn new(root: PathBuf, bytes_max: u64, hold: Duration, env: Env) -> Self {
        let all_until = env.clock.monotonic() + hold;
        let kept =
            Mutex::new(Kept { until: BTreeMap::new(), all_until, damaged: BTreeSet::new(), names: BTreeMap::new() });
        Self { root, bytes_max, hold, boot: env.entropy.u64(), next: AtomicU64::new(0), env, kept }
    }

    pub(super) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    pub(super) fn hold_time(&self) -> Duration {
        self.hold
    }

    /// The size of an artifact. None if it is missing or damaged.
    pub(super) fn size(&self, digest: Digest) -> Result<Option<u64>, ArtifactError> {
        if self.lock().damaged.contains(&digest) {
            return Ok(None);
        }
        self.env.files.size(&self.path(digest)).map_err(failed("look for", digest))
    }

    /// Holds an artifact for a while, if it exists.
    pub(super) fn hold(&self, digest: Digest) -> Result<bool, ArtifactError> {
        let is_here = {
            // The lock prevents a removal between the check and the hold.
            let mut kept = self.lock();
            let is_here = !kept.damaged.contains(&digest)
                && self.env.files.size(&self.path(digest)).map_err(failed("look for", digest))?.is_some();
            if is_here {
                kept.until.insert(digest, self.env.clock.monotonic() + self.hold);
            }
            is_here
        };
        if is_here {
            // An earlier writer may have stopped between the rename and its sync.
            self.sync_name(digest)?;
        }
        Ok(is_here)
    }

    /// Makes the name of an artifact durable, unless it is known to be.
    fn sync_name(&self, digest: Digest) -> Result<(), ArtifactError> {
        let group = digest.0[0];
        let names = self.lock().names.get(&group).copied().unwrap_or_default();
        if names.synced == Some(names.given) {
            return Ok(());
        }
        let path = self.path(digest);
        let files = &self.env.files;
        if names.synced.is_none() {
            // The directory may have been created together with the name.
            files.sync_dir(&self.root).map_err(failed("store", digest))?;
        }
        files.sync_dir(path.parent().unwrap_or(&self.root)).map_err(failed("store", digest))?;
        let mut kept = self.lock();
        let now = kept.names.entry(group).or_default();
        now.synced = now.synced.max(Some(names.given));
        Ok(())
    }

    /// Stores bytes that are completely in memory.
    pub(super) fn write(&self, bytes: &Bytes) -> Result<Digest, ArtifactError> {
        let digest = digest_of(bytes);
        if !self.hold(digest)? {
            let mut incoming = self.begin(digest)?;
            incoming.write(bytes)?;
            self.finish(incoming)?;
        }
        Ok(digest)
    }

    /// Creates a file for received bytes.
    pub(super) fn begin(&self, digest: Digest) -> Result<Incoming, ArtifactError> {
        let failed = failed("make room for", digest);
        let dir = self.root.join("incoming");
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("{}.{:016x}-{number}.partial", digest.hex(), self.boot));
        let file = self.env.files.create_dir_all(&dir).and_then(|()| self.env.files.create(&path)).map_err(failed)?;
        Ok(Incoming {
            digest,
            bytes_max: self.bytes_max,
            file: Some(file),
            path,
            env: self.env.clone(),
            hash: Sha256::new(),
            bytes: 0,
        })
    }

    /// Makes received bytes durable under their digest, if they match it. The artifact is then held.
    pub(super) fn finish(&self, mut incoming: Incoming) -> Result<(), ArtifactError> {
        let digest = incoming.digest;
        if Digest(std::mem::take(&mut incoming.hash).finalize().into()) != digest {
            return Err(ArtifactError::Damaged(digest));
        }
        let Some(mut file) = incoming.file.take() else { return Err(ArtifactError::Stopped) };
        file.sync().map_err(failed("store", digest))?;
        drop(file);
        let path = self.path(digest);
        let dir = path.parent().unwrap_or(&self.root);
        self.env.files.create_dir_all(dir).map_err(failed("store", digest))?;
        {
            let mut kept = self.lock();
            if kept.damaged.contains(&digest) {
                self.set_aside(digest, &path);
            }
            self.env.files.rename(&incoming.path, &path).map_err(failed("store", digest))?;
            kept.damaged.remove(&digest);
            kept.until.insert(digest, self.env.clock.monotonic() + self.hold);
            kept.names.entry(digest.0[0]).or_default().given += 1;
        }
        self.sync_name(digest)
    }

    /// Reads and verifies an artifact. A damaged one counts as missing from then on.
    pub(super) fn read(&self, digest: Digest) -> Result<Bytes, ArtifactError> {
        let size = self.size(digest)?.ok_or(ArtifactError::Missing(digest))?;
        if size > self.bytes_max {
            return Err(ArtifactError::TooLarge { bytes: size, max: self.bytes_max });
        }
        let bytes = self.env.files.read(&self.path(digest)).map_err(failed("read", digest))?;
        if digest_of(&bytes) == digest { Ok(bytes.into()) } else { Err(self.damaged(digest)) }
    }

    /// Opens an artifact to send it.
    pub(super) fn open(&self, digest: Digest) -> Result<Arc<dyn FileReader>, ArtifactError> {
        self.size(digest)?.ok_or(ArtifactError::Missing(digest))?;
        self.env.files.open(&self.path(digest)).map_err(failed("read", digest))
    }

    /// Marks a file as damaged.
    pub(super) fn damaged(&self, digest: Digest) -> ArtifactError {
        tracing::error!(%digest, path = %self.path(digest).display(), "an artifact on this disk is damaged");
        self.lock().damaged.insert(digest);
        ArtifactError::Damaged(digest)
    }

    /// All artifacts, except damaged ones.
    pub(super) fn list(&self) -> Result<Vec<Digest>, ArtifactError> {
        let listed = |source| ArtifactError::Directory { doing: "list", source };
        let mut found = Vec::new();
        for dir in self.entries(&self.root).map_err(listed)? {
            let Some(head) = name(&dir).filter(|name| name.len() == 2).map(str::to_owned) else { continue };
            for path in self.entries(&dir).map_err(listed)? {
                let hex = name(&path).map(|tail| format!("{head}{tail}")).unwrap_or_default();
                found.extend(hex.parse().ok().filter(|digest: &Digest| digest.hex() == hex));
            }
        }
        let kept = self.lock();
        found.retain(|digest| !kept.damaged.contains(digest));
        Ok(found)
    }

    /// Artifacts without a hold.
    pub(super) fn loose(&self) -> Result<Vec<Digest>, ArtifactError> {
        let mut found = self.list()?;
        let now = self.env.clock.monotonic();
        let mut kept = self.lock();
        kept.until.retain(|_, until| now < *until);
        found.retain(|digest| !kept.holds(digest, now));
        Ok(found)
    }

    /// Removes an artifact without a hold. Returns the number of bytes freed.
    pub(super) fn remove(&self, digest: Digest) -> Result<u64, ArtifactError> {
        let path = self.path(digest);
        // The lock is held until the artifact is removed. A new hold waits and then finds the artifact missing.
        let kept = self.lock();
        if kept.holds(&digest, self.env.clock.monotonic()) {
            return Ok(0);
        }
        let size = self.env.files.size(&path).map_err(failed("look for", digest))?;
        let Some(size) = size else { return Ok(0) };
        self.env.files.remove(&path).map_err(failed("remove", digest))?;
        Ok(size)
    }

    /// Removes incomplete files of earlier processes.
    pub(super) fn sweep(&self) -> Result<usize, ArtifactError> {
        let swept = |source| ArtifactError::Directory { doing: "clear", source };
        let own = format!(".{:016x}-", self.boot);
        let mut removed = 0;
        let mut dirs = self.entries(&self.root).map_err(swept)?;
        dirs.retain(|dir| name(dir).is_some_and(|name| name == "incoming" || name.len() == 2));
        for dir in dirs {
            for path in self.entries(&dir).map_err(swept)? {
                let left = name(&path)
                    .is_some_and(|name| (name.ends_with(".partial") && !name.contains(&own)) || name.ends_with(".tmp"));
                if left {
                    self.env.files.remove(&path).map_err(swept)?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }

    fn set_aside(&self, digest: Digest, path: &Path) {
        let dir = self.root.join("damaged");
        let is_full = self.entries(&dir).is_ok_and(|found| found.len() >= DAMAGED_MAX);
        let moved = if is_full {
            self.env.files.remove(path)
        } else {
            let made = self.env.files.create_dir_all(&dir);
            made.and_then(|()| self.env.files.rename(path, &dir.join(digest.hex())))
        };
        // A good copy replaces the file even if this fails.
        if let Err(error) = moved {
            tracing::warn!(%error, %digest, "could not move a damaged artifact away");
        }
    }

    fn entries(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        match self.env.files.list(dir) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(Vec::new())
            }
            listed => listed,
        }
    }

    fn path(&self, digest: Digest) -> PathBuf {
        let hex = digest.hex();
        let (head, tail) = hex.split_at(2);
        self.root.join(head).join(tail)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An artifact that is being received. Dropping it before its end removes the file.
pub(super) struct Incoming {
    digest: Digest,
    bytes_max: u64,
    file: Option<Box<dyn FileWriter>>,
    path: PathBuf,
    env: Env,
    hash: Sha256,
    bytes: u64,
}

impl Incoming {
    /// Writes the next bytes.
    pub(super) fn write(&mut self, chunk: &[u8]) -> Result<(), ArtifactError> {
        self.bytes += chunk.len() as u64;
        if self.bytes > self.bytes_max {
            return Err(ArtifactError::TooLarge { bytes: self.bytes, max: self.bytes_max });
        }
        let Some(file) = &mut self.file else { return Err(ArtifactError::Stopped) };
        file.write_all(chunk).map_err(failed("store", self.digest))?;
        self.hash.update(chunk);
        Ok(())
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // A finished file was renamed, so there is nothing to remove. The next start removes other leftovers.
        let _ = self.env.files.remove(&self.path);
    }
}

fn failed(doing: &'static str, digest: Digest) -> impl FnOnce(io::Error) -> ArtifactError {
    move |source| ArtifactError::Io { doing, digest, source }
}

fn name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}
