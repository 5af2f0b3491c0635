//! Small files that are written whole: artifacts, marks, sockets' addresses. Blocking; call it off the async threads.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Reads and writes whole files.
pub trait Files: Send + Sync + 'static {
    /// The bytes of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Writes a file so that after a crash it is there whole or not at all: temporary file, fsync, rename, fsync of the directory.
    fn write_durably(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Creates a directory and its parents.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// The paths in a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;

    /// The size of a file; none if there is none.
    fn size(&self, path: &Path) -> io::Result<Option<u64>>;
}

/// The machine's file system.
#[derive(Debug, Clone, Copy)]
pub struct SystemFiles;

impl Files for SystemFiles {
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
            // The cause of the failure matters, not whether its rest could be cleared away.
            let _ = fs::remove_file(&temporary);
        }
        written?;
        File::open(dir)?.sync_all()
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
    fn a_write_into_a_missing_directory_fails() {
        let dir = tempfile::tempdir().expect("temporary directory");
        assert!(SystemFiles.write_durably(&dir.path().join("no/such"), b"x").is_err());
        assert_eq!(SystemFiles.size(&dir.path().join("no")).expect("readable"), None);
    }
}
