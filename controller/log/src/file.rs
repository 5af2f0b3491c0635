//! Segments as files, written by direct I/O where the file system supports it.
//!
//! A file is filled with zeros before its first use and reused later, so that a sync changes neither its size nor its
//! extents. This reduces a sync from 250 to 140 µs. Files are filled in the background. If the next file is not ready
//! in time, a small one is filled immediately.

pub mod mark;
mod spares;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atlas_env::Env;

use self::spares::{SMALL_BYTES, Spares, fill_whole};
use super::driver::{Driver, MarkFile, Segment, Space};
use super::error::LogError;

/// Segments in a directory of their own.
pub struct FileDriver {
    dir: PathBuf,
    spares: Arc<Spares>,
    /// Holds the directory's lock.
    _lock: File,
}

impl FileDriver {
    /// Locks the log's directory against other processes. Segments are prepared with `segment_bytes`.
    pub fn open(dir: &Path, segment_bytes: u64, env: &Env) -> Result<Self, LogError> {
        let named = |what, path: &Path| {
            let file = path.display().to_string();
            move |source| LogError::Io { what, file, source }
        };
        fs::create_dir_all(dir).map_err(named("create", dir))?;
        let lock_path = dir.join("lock");
        let lock = File::create(&lock_path).map_err(named("create", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LogError::Locked { dir: dir.display().to_string() }),
            Err(TryLockError::Error(source)) => return Err(named("lock", &lock_path)(source)),
        }
        let spares = Spares::new(dir, segment_bytes, env);
        let entries = fs::read_dir(dir).map_err(named("list", dir))?;
        for entry in entries {
            let entry = entry.map_err(named("list", dir))?;
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".tmp") {
                fs::remove_file(&path).map_err(named("remove", &path))?;
            } else if let Some(number) = number_in(&name, "spare-") {
                let bytes = entry.metadata().map_err(named("read", &path))?.len();
                spares.found(number, path, bytes);
            }
        }
        Ok(Self { dir: dir.to_owned(), spares: Arc::new(spares), _lock: lock })
    }

    fn path(&self, sequence: u64) -> PathBuf {
        self.dir.join(self.name(sequence))
    }

    fn sync_dir(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }

    fn segment(&self, path: &Path) -> io::Result<Arc<dyn Segment>> {
        let writer = open_direct(path)?;
        let reader = File::open(path)?;
        let bytes = reader.metadata()?.len();
        Ok(Arc::new(FileSegment { writer, reader, bytes, spares: Arc::clone(&self.spares) }))
    }
}

impl Driver for FileDriver {
    fn list(&mut self) -> io::Result<Vec<u64>> {
        segments_in(&self.dir)
    }

    fn open(&mut self, sequence: u64) -> io::Result<Arc<dyn Segment>> {
        self.segment(&self.path(sequence))
    }

    fn create(&mut self, sequence: u64, least: u64, usual: u64) -> io::Result<Arc<dyn Segment>> {
        let path = self.path(sequence);
        match self.spares.take(least) {
            Some(spare) => fs::rename(spare, &path)?,
            None => {
                let bytes = if least > SMALL_BYTES { least } else { usual.min(SMALL_BYTES) };
                fill_whole(&path.with_extension("tmp"), bytes)?;
                fs::rename(path.with_extension("tmp"), &path)?;
            }
        }
        self.sync_dir()?;
        self.segment(&path)
    }

    fn retire(&mut self, sequence: u64) -> io::Result<()> {
        let path = self.path(sequence);
        self.spares.give(&path)?;
        // Segments are removed in order and durably, so that after a crash the remaining ones are consecutive.
        self.sync_dir()
    }

    fn mark(&mut self) -> io::Result<Option<Arc<dyn MarkFile>>> {
        Ok(Some(Arc::new(mark::open(&self.dir)?)))
    }

    fn space(&self) -> Arc<dyn Space> {
        Arc::new(FileSpace { dir: self.dir.clone() })
    }

    fn name(&self, sequence: u64) -> String {
        segment_name(sequence)
    }
}

/// The name of a segment's file.
pub fn segment_name(sequence: u64) -> String {
    format!("log-{sequence:016x}.seg")
}

/// The free space on the file system of the log's directory. The ballast is a file beside the segments.
struct FileSpace {
    dir: PathBuf,
}

impl Space for FileSpace {
    fn free_bytes(&self) -> io::Result<u64> {
        free_bytes(&self.dir)
    }

    fn set_ballast(&self, bytes: u64) -> io::Result<()> {
        set_ballast(&self.dir, bytes)
    }
}

/// The bytes that an unprivileged process may still write on the file system of `dir`.
pub fn free_bytes(dir: &Path) -> io::Result<u64> {
    let found = nix::sys::statvfs::statvfs(dir)?;
    Ok(found.blocks_available() * found.fragment_size())
}

/// Sets the size of the ballast file in `dir` to `bytes`. Its blocks are reserved, not written.
pub fn set_ballast(dir: &Path, bytes: u64) -> io::Result<()> {
    let path = dir.join("ballast");
    if bytes == 0 {
        return match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
    if file.metadata()?.len() != bytes {
        file.set_len(bytes)?;
    }
    let len = nix::libc::off_t::try_from(bytes).unwrap_or(nix::libc::off_t::MAX);
    let reserved = nix::fcntl::posix_fallocate(&file, 0, len);
    reserved.map_err(|error| {
        // An incomplete ballast file is removed, so that it takes no space.
        let _ = fs::remove_file(&path);
        io::Error::from(error)
    })
}

struct FileSegment {
    /// Uses direct I/O where possible.
    writer: File,
    /// Uses the page cache, so that reads need no alignment.
    reader: File,
    bytes: u64,
    spares: Arc<Spares>,
}

impl Segment for FileSegment {
    fn size(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.reader.read_exact_at(buf, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all_at(bytes, offset)?;
        if offset > self.bytes / 4 {
            self.spares.want();
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.writer.sync_data()
    }
}

fn open_direct(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    match options.clone().custom_flags(nix::libc::O_DIRECT).open(path) {
        // Some file systems do not support direct I/O.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => options.open(path),
        opened => opened,
    }
}

/// The sequence numbers of the segments in a folder, in rising order.
pub fn segments_in(dir: &Path) -> io::Result<Vec<u64>> {
    let mut sequences = Vec::new();
    for entry in fs::read_dir(dir)? {
        sequences.extend(number_in(&entry?.file_name().to_string_lossy(), "log-"));
    }
    sequences.sort_unstable();
    Ok(sequences)
}

/// The number in a file's name.
fn number_in(name: &str, prefix: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix(prefix)?.strip_suffix(".seg")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Block;

    #[test]
    fn a_directory_has_one_user() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let first = FileDriver::open(dir.path(), 3 << 20, &Env::system()).expect("free");
        assert!(matches!(FileDriver::open(dir.path(), 3 << 20, &Env::system()), Err(LogError::Locked { .. })));
        drop(first);
        assert!(FileDriver::open(dir.path(), 3 << 20, &Env::system()).is_ok());
    }

    #[test]
    fn a_retired_segment_is_used_again() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let mut driver = FileDriver::open(dir.path(), 3 << 20, &Env::system()).expect("free");
        let segment = driver.create(1, 3 << 20, 3 << 20).expect("created");
        let mut block = Block::default();
        block.clear(1);
        block.as_mut()[0] = 9;
        segment.write_at(4096, block.as_ref()).expect("written");
        segment.sync().expect("synced");
        driver.retire(1).expect("retired");
        let again = driver.create(2, 4096, 3 << 20).expect("created");
        let mut byte = [0];
        again.read_at(4096, &mut byte).expect("readable");
        assert_eq!((byte, again.size(), driver.list().expect("listable")), ([9], 3 << 20, vec![2]));
    }
}
