//! Files that are written completely or sequentially: artifacts, snapshots, marks. All calls block; do not use them on
//! async threads.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that is being written sequentially. Its contents are durable after [`FileWriter::sync`], its name after
/// [`Files::sync_dir`].
pub trait FileWriter: Write + Send {
    /// Makes the written bytes durable.
    fn sync(&mut self) -> io::Result<()>;
}

/// An open file. It stays readable after the file is removed or replaced.
pub trait FileReader: Send + Sync {
    /// The size of the file when it was opened.
    fn size(&self) -> u64;

    /// Fills `buf` from `offset`; a shorter read is an error.
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()>;
}

/// Reads and writes files.
pub trait Files: Send + Sync + 'static {
    /// Creates an empty file, or truncates an existing one.
    fn create(&self, path: &Path) -> io::Result<Box<dyn FileWriter>>;

    /// Like [`Self::create`], with that many bytes of zeros, which are overwritten. A sync then changes neither the size
    /// of the file nor its extents, and waits for no other file: where others write a lot it takes a fraction of the time.
    /// Not every implementation fills files.
    fn create_filled(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn FileWriter>> {
        let _ = bytes;
        self.create(path)
    }

    /// Opens a file to read parts of it.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn FileReader>>;

    /// Renames a file, and replaces an existing one.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes the entries of a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// The bytes of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Writes a file atomically and durably: temporary file, fsync, rename, fsync of the directory.
    fn write_durably(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Creates a directory and its parents.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// The paths in a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;

    /// The size of a file; none if the file does not exist.
    fn size(&self, path: &Path) -> io::Result<Option<u64>>;
}

/// Whether a write failed because the disk or the user's quota is full. A later write may succeed.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The machine's file system.
#[derive(Debug, Clone, Copy)]
pub struct SystemFiles;

impl FileWriter for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

/// A file of which no more than the contents need to be synced.
struct Filled(File);

impl Write for Filled {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl FileWriter for Filled {
    fn sync(&mut self) -> io::Result<()> {
        // Includes the size, should it change after all.
        self.0.sync_data()
    }
}

/// An open file and its size.
struct SystemReader(File, u64);

impl FileReader for SystemReader {
    fn size(&self) -> u64 {
        self.1
    }

    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(buf, offset)
    }
}

impl Files for SystemFiles {
    fn create(&self, path: &Path) -> io::Result<Box<dyn FileWriter>> {
        Ok(Box::new(File::create(path)?))
    }

    fn create_filled(&self, path: &Path, bytes: u64) -> io::Result<Box<dyn FileWriter>> {
        let mut file = File::create(path)?;
        io::copy(&mut io::repeat(0).take(bytes), &mut file)?;
        file.sync_all()?;
        file.rewind()?;
        Ok(Box::new(Filled(file)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn FileReader>> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Arc::new(SystemReader(file, bytes)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn write_durably(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(format!(".{:016x}.tmp", rand::random::<u64>()));
        let temporary = PathBuf::from(temporary);
        let written = write_and_rename(&temporary, path, bytes);
        if written.is_err() {
            // The first error is the one to report, even if the temporary file cannot be removed.
            let _ = fs::remove_file(&temporary);
        }
        written?;
        self.sync_dir(dir)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let mut paths = fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        paths.sort();
        Ok(paths)
    }

    fn size(&self, path: &Path) -> io::Result<Option<u64>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn write_and_rename(temporary: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_leaves_no_rest() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("mark");
        for text in ["one", "two"] {
            SystemFiles.write_durably(&path, text.as_bytes()).expect("writable");
            assert_eq!(SystemFiles.read(&path).expect("readable"), text.as_bytes());
        }
        assert_eq!(SystemFiles.list(dir.path()).expect("listable"), [path]);
    }

    #[test]
    fn a_filled_file_is_overwritten_and_grows_when_it_is_full() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("filled");
        let mut file = SystemFiles.create_filled(&path, 6).expect("writable");
        for (text, expected) in [("ab\n", "ab\n\0\0\0"), ("cdef\n", "ab\ncdef\n")] {
            file.write_all(text.as_bytes()).expect("writable");
            file.sync().expect("syncs");
            assert_eq!(SystemFiles.read(&path).expect("readable"), expected.as_bytes());
        }
        assert!(SystemFiles.create_filled(&dir.path().join("no/such"), 6).is_err());
    }

    #[test]
    fn a_write_into_a_missing_directory_fails() {
        let dir = tempfile::tempdir().expect("temporary directory");
        assert!(SystemFiles.write_durably(&dir.path().join("no/such"), b"x").is_err());
        assert_eq!(SystemFiles.size(&dir.path().join("no")).expect("readable"), None);
    }
}
