//! Files that are filled in advance or recycled: the next segment uses one of them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atlas_env::Env;

use super::{free_bytes, open_direct};
use crate::block::{BLOCK_BYTES, Block};

/// The size of a file that is filled when no prepared file is ready.
pub(super) const SMALL_BYTES: u64 = 1 << 20;
/// The most files that are kept for reuse.
const SPARES_MAX: usize = 2;
const FILL_BYTES: usize = 1 << 20;

/// Files that are filled and ready, or being filled.
pub(super) struct Spares {
    dir: PathBuf,
    env: Env,
    state: Mutex<SpareState>,
}

#[derive(Default)]
struct SpareState {
    ready: Vec<(PathBuf, u64)>,
    filling: bool,
    segment_bytes: u64,
    drawn: u64,
}

impl Spares {
    /// Starts without files.
    pub(super) fn new(dir: &Path, segment_bytes: u64, env: &Env) -> Self {
        let state = SpareState { segment_bytes, ..SpareState::default() };
        Self { dir: dir.to_owned(), env: env.clone(), state: Mutex::new(state) }
    }

    /// Registers a file that an earlier process left.
    pub(super) fn found(&self, number: u64, path: PathBuf, bytes: u64) {
        let mut state = self.state();
        state.drawn = state.drawn.max(number);
        state.ready.push((path, bytes));
    }

    fn state(&self) -> MutexGuard<'_, SpareState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a file of at least `least` bytes.
    pub(super) fn take(&self, least: u64) -> Option<PathBuf> {
        let mut state = self.state();
        let at = state.ready.iter().position(|&(_, bytes)| bytes >= least)?;
        Some(state.ready.swap_remove(at).0)
    }

    /// Keeps a retired segment for reuse, or removes it.
    pub(super) fn give(&self, path: &Path) -> io::Result<()> {
        let bytes = fs::metadata(path)?.len();
        let spare = {
            let mut state = self.state();
            if state.ready.len() >= SPARES_MAX || bytes <= SMALL_BYTES {
                return fs::remove_file(path);
            }
            state.drawn += 1;
            self.dir.join(format!("spare-{:016x}.seg", state.drawn))
        };
        fs::rename(path, &spare)?;
        self.state().ready.push((spare, bytes));
        Ok(())
    }

    /// Begins to fill the next file, unless one is ready or being filled.
    pub(super) fn want(self: &Arc<Self>) {
        let (spare, bytes) = {
            let mut state = self.state();
            if state.filling || !state.ready.is_empty() {
                return;
            }
            // On a nearly full disk, the remaining space is needed for more urgent data than a file for later.
            if free_bytes(&self.dir).is_ok_and(|free| free < 2 * state.segment_bytes) {
                return;
            }
            state.filling = true;
            state.drawn += 1;
            (self.dir.join(format!("spare-{:016x}.seg", state.drawn)), state.segment_bytes)
        };
        let spares = Arc::clone(self);
        let begun = self.env.thread("raft-log-fill", move || {
            let temporary = spare.with_extension("tmp");
            let filled = fill_whole(&temporary, bytes).and_then(|()| fs::rename(&temporary, &spare));
            let mut state = spares.state();
            state.filling = false;
            match filled {
                Ok(()) => state.ready.push((spare, bytes)),
                // Not fatal: the next segment is then filled when it is needed, and fails at that point if the disk is
                // full.
                Err(error) => tracing::warn!(%error, "could not prepare the next log segment"),
            }
        });
        if let Err(error) = begun {
            self.state().filling = false;
            tracing::warn!(%error, "could not start preparing the log's next segment");
        }
    }
}

/// Creates a complete file of zeros. On failure no file remains.
pub(super) fn fill_whole(path: &Path, bytes: u64) -> io::Result<()> {
    fill(path, bytes).inspect_err(|_| drop(fs::remove_file(path)))
}

/// Creates a file of `bytes` zeros and really writes them: `fallocate` alone would leave extents that every later sync
/// must journal.
fn fill(path: &Path, bytes: u64) -> io::Result<()> {
    drop(File::create(path)?);
    let file = open_direct(path)?;
    let mut zeros = Block::default();
    zeros.clear(FILL_BYTES.min(usize::try_from(bytes).unwrap_or(FILL_BYTES)));
    let bytes = bytes.next_multiple_of(BLOCK_BYTES as u64);
    let mut offset = 0;
    while offset < bytes {
        let len = zeros.as_ref().len().min(usize::try_from(bytes - offset).unwrap_or(usize::MAX));
        file.write_all_at(&zeros.as_ref()[..len], offset)?;
        offset += len as u64;
    }
    file.sync_all()
}
