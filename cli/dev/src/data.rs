//! The data folder of a development cluster, locked by one process at a time.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use atlas_env::LockError;

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The folder could not be created or opened.
    #[error("could not use \"{}\" for data", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process holds the lock on the folder.
    #[error("\"{}\" is in use by {by}", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
        /// The other process.
        by: String,
    },
}

/// A data folder, locked by this process until this value is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    ephemeral: Option<tempfile::TempDir>,
    /// The system releases the lock when the process ends, even if it is killed.
    _lock: File,
}

impl DataDir {
    /// Locks a permanent folder; creates it if it is missing.
    pub fn kept(path: &Path) -> Result<Self, DataError> {
        let failed = |source| DataError::Folder { path: path.to_owned(), source };
        std::fs::create_dir_all(path).map_err(failed)?;
        // The path must be absolute, because agents run in other working folders.
        Ok(Self { path: path.canonicalize().map_err(failed)?, ephemeral: None, _lock: lock(path)? })
    }

    /// Creates a temporary folder, which is deleted when this value is dropped.
    pub fn ephemeral() -> Result<Self, DataError> {
        let failed = |source| DataError::Folder { path: std::env::temp_dir(), source };
        let made = tempfile::Builder::new().prefix("atlas-dev-").tempdir().map_err(failed)?;
        Ok(Self { path: made.path().to_owned(), _lock: lock(made.path())?, ephemeral: Some(made) })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the folder is temporary.
    pub fn is_ephemeral(&self) -> bool {
        self.ephemeral.is_some()
    }
}

fn lock(path: &Path) -> Result<File, DataError> {
    let failed = |source| DataError::Folder { path: path.to_owned(), source };
    match atlas_env::lock(&path.join("dev.lock"), "atlasctl dev") {
        Ok(file) => Ok(file),
        Err(LockError::Held(by)) => Err(DataError::InUse { path: path.to_owned(), by }),
        Err(LockError::File(source)) => Err(failed(source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_owner_at_a_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("deep/data");
        let first = DataDir::kept(&path).expect("free");
        assert!(matches!(DataDir::kept(&path), Err(DataError::InUse { .. })));
        drop(first);
        DataDir::kept(&path).expect("free again");
    }

    #[test]
    fn an_ephemeral_folder_leaves_nothing() {
        let data = DataDir::ephemeral().expect("made");
        let path = data.path().to_owned();
        assert!(path.is_dir() && data.is_ephemeral());
        drop(data);
        assert!(!path.exists());
    }
}
