//! The durable mark on a simulated disk.

use std::io;

use super::{Contents, SimDisk, begin};
use crate::driver::MarkFile;
use crate::mark::{FILE_BYTES, Mark, furthest};

impl SimDisk {
    /// The durable mark that would certainly survive a power failure.
    pub fn durable_mark(&self) -> Option<Mark> {
        furthest(&self.state().mark.durable).map(|(_, mark)| mark)
    }

    /// Passes the durable bytes of the mark's file to `change`.
    pub fn with_mark<T>(&self, change: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        change(&mut self.state().mark.durable)
    }

    /// Removes the mark, as if the log had been written by a program that kept none.
    pub fn forget_mark(&self) {
        self.state().mark = empty();
    }

    /// Makes writes and syncs of the mark fail, or succeed again.
    pub fn fail_marks(&self, fail: bool) {
        self.state().fail_marks = fail;
    }

    /// Removes everything, as on a new disk.
    pub fn wipe(&self) {
        let mut state = self.state();
        state.segments.clear();
        state.mark = empty();
    }
}

/// A file without a mark.
pub(super) fn empty() -> Contents {
    Contents { durable: vec![0; FILE_BYTES], pending: Vec::new() }
}

/// The mark's file on a [`SimDisk`].
pub(super) struct SimMark {
    pub(super) disk: SimDisk,
    pub(super) life: u64,
}

impl MarkFile for SimMark {
    fn read(&self) -> io::Result<Vec<u8>> {
        Ok(super::alive(&self.disk, self.life)?.mark.seen())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = begin(&self.disk, self.life)?;
        if state.fail_marks {
            return Err(io::Error::other("a mark failed as told"));
        }
        state.mark.pending.push((usize::try_from(offset).unwrap_or(usize::MAX), bytes.to_vec()));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = begin(&self.disk, self.life)?;
        if state.fail_marks {
            return Err(io::Error::other("a mark failed as told"));
        }
        state.mark.settle();
        Ok(())
    }
}
