//! Folders that belong to one process tree and go with it.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A new folder, for this user alone. It is removed with this value.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

/// Numbers folders.
static FOLDERS: AtomicU64 = AtomicU64::new(0);

impl Folder {
    /// Makes a folder under another one, which is made if it is missing.
    pub(crate) fn new(under: &Path) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(under)?;
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let path = under.canonicalize()?.join(format!("{}-{number}", std::process::id()));
        // One of that name is of an earlier process with the same number, whose folders were to be removed.
        remove(&path)?;
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

/// The working directory of one process tree.
#[derive(Debug)]
pub(crate) struct OwnDirectory {
    folder: Folder,
    package: Option<PathBuf>,
}

impl OwnDirectory {
    /// An empty one.
    pub(crate) fn empty(under: &Path) -> io::Result<Self> {
        Ok(Self { folder: Folder::new(under)?, package: None })
    }

    /// One into which the supervisor of the tree copies a package before it starts the program. This process does not: while a
    /// file is open for writing here, another thread may fork, and a program with such a file cannot be started.
    pub(crate) fn with_package(under: &Path, package: &Path) -> io::Result<Self> {
        Ok(Self { folder: Folder::new(under)?, package: Some(package.to_owned()) })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The package that is copied.
    pub(crate) fn package(&self) -> Option<&Path> {
        self.package.as_deref()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left is removed at the next start.
        let _ = remove(&self.0);
    }
}

/// Removes a folder with all that is in it, also where its owner has taken the right to do so from itself.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path)?;
            fs::remove_dir_all(path)
        }
        other => other,
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Lets the owner change a folder and those in it. Links are not followed.
fn open_up(path: &Path) -> io::Result<()> {
    let mode = path.symlink_metadata()?.permissions().mode();
    fs::set_permissions(path, fs::Permissions::from_mode(mode | 0o700))?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_whatever_is_in_it() {
        let root = tempfile::tempdir().expect("temporary directory");
        let folder = Folder::new(&root.path().join("a/b")).expect("writable");
        let closed = folder.path().join("closed/inner");
        fs::create_dir_all(&closed).expect("its own folder");
        fs::write(closed.join("x"), "").expect("its own folder");
        for path in [&closed, &folder.path().join("closed")] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o000)).expect("its own folder");
        }
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
        assert!(remove(&path).is_ok());
    }
}
