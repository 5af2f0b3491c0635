//! Reads a member's files without changing them.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atlas_env::SystemFiles;

use super::{OfflineError, Tail};
use crate::consensus::RaftSnapshotMeta;
use crate::consensus::snapshot::SnapshotFile;
use atlas_log::file::mark::open_to_read;
use atlas_log::file::{segment_name, segments_in};
use atlas_log::mark::{LogEnd, furthest};
use atlas_log::{Driver, LogError, MarkFile, Segment};

/// The log's directory, opened for reading.
pub(super) struct ReadOnlyDriver {
    dir: PathBuf,
    /// Whether the durable mark is used. Without it, a damaged last group counts as torn.
    marked: bool,
    /// Holds the log's lock.
    _lock: File,
}

impl ReadOnlyDriver {
    /// Locks the directory, so that no controller can use it meanwhile.
    pub(super) fn open(dir: &Path, tail: Tail) -> Result<Self, OfflineError> {
        let lock = match File::open(dir.join("lock")) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(OfflineError::NoLog { path: dir.to_owned() });
            }
            Err(source) => {
                return Err(OfflineError::Log(LogError::Io { what: "lock", file: "lock".to_owned(), source }));
            }
        };
        match lock.try_lock() {
            Ok(()) => Ok(Self { dir: dir.to_owned(), marked: tail == Tail::Whole, _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                Err(OfflineError::Log(LogError::Locked { dir: dir.display().to_string() }))
            }
            Err(TryLockError::Error(source)) => {
                Err(OfflineError::Log(LogError::Io { what: "lock", file: "lock".to_owned(), source }))
            }
        }
    }
}

impl ReadOnlyDriver {
    /// True if the durable mark, used or not, records durable data after `end`.
    pub(super) fn ends_before_mark(&self, end: LogEnd) -> bool {
        let file = open_to_read(&self.dir).ok().flatten();
        let mark = file.and_then(|file| furthest(&file.read().ok()?));
        mark.is_some_and(|(_, mark)| mark.group > end.group)
    }
}

impl Driver for ReadOnlyDriver {
    fn list(&mut self) -> io::Result<Vec<u64>> {
        segments_in(&self.dir)
    }

    fn open(&mut self, sequence: u64) -> io::Result<Arc<dyn Segment>> {
        let file = File::open(self.dir.join(segment_name(sequence)))?;
        let bytes = file.metadata()?.len();
        Ok(Arc::new(ReadOnlySegment { file, bytes }))
    }

    fn create(&mut self, _sequence: u64, _least: u64, _usual: u64) -> io::Result<Arc<dyn Segment>> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn retire(&mut self, _sequence: u64) -> io::Result<()> {
        // A segment that was created and never used contains nothing, so a reader can ignore it.
        Ok(())
    }

    fn mark(&mut self) -> io::Result<Option<Arc<dyn MarkFile>>> {
        let found = if self.marked { open_to_read(&self.dir)? } else { None };
        Ok(found.map(|mark| Arc::new(mark) as Arc<dyn MarkFile>))
    }

    fn name(&self, sequence: u64) -> String {
        segment_name(sequence)
    }
}

struct ReadOnlySegment {
    file: File,
    bytes: u64,
}

impl Segment for ReadOnlySegment {
    fn size(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buf, offset)
    }

    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

/// The newest snapshot in a directory, verified completely; none if the directory has none.
pub(super) fn newest_snapshot(dir: &Path) -> io::Result<Option<(RaftSnapshotMeta, SnapshotFile)>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    let mut newest = None;
    for entry in entries {
        let path = entry?.path();
        // The names sort by index.
        if path.extension().is_some_and(|extension| extension == "snap") {
            newest = newest.max(Some(path));
        }
    }
    let Some(path) = newest else { return Ok(None) };
    let file = SnapshotFile::open(&SystemFiles, &path)?;
    let (meta, ()) = file.read(|_| Ok(()))?;
    Ok(Some((meta, file)))
}
