//! How the worker notices that files of a package were changed, without reading them.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use sha2::{Digest, Sha256};

/// What the system says about the files and folders of a package: sizes, modes, inodes and times. The time of the last change of an
/// inode cannot be set by a program, except by changing the clock of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seal([u8; 32]);

impl Seal {
    /// Makes the files of a package read-only, which stops mistakes, and looks at them.
    pub(super) fn put_on(package: &Path) -> io::Result<Self> {
        make_read_only(package)?;
        Self::of(package)
    }

    /// Looks at the files of a package.
    pub(super) fn of(package: &Path) -> io::Result<Self> {
        let mut hasher = Sha256::new();
        look(package, &mut hasher)?;
        Ok(Self(hasher.finalize().into()))
    }
}

fn make_read_only(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            make_read_only(&entry.path())?;
        } else if kind.is_file() {
            let mode = entry.metadata()?.permissions().mode();
            if mode & 0o222 != 0 {
                fs::set_permissions(entry.path(), fs::Permissions::from_mode(mode & !0o222))?;
            }
        }
    }
    Ok(())
}

fn look(path: &Path, hasher: &mut Sha256) -> io::Result<()> {
    let metadata = path.symlink_metadata()?;
    let name = path.file_name().unwrap_or_default().as_bytes();
    hasher.update((name.len() as u64).to_le_bytes());
    hasher.update(name);
    for number in [metadata.ino(), metadata.dev(), metadata.mode().into(), metadata.size()] {
        hasher.update(number.to_le_bytes());
    }
    for time in [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()] {
        hasher.update(time.to_le_bytes());
    }
    if !metadata.is_dir() {
        return Ok(());
    }
    let mut inside =
        fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    inside.sort();
    hasher.update((inside.len() as u64).to_le_bytes());
    inside.iter().try_for_each(|path| look(path, hasher))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a seal notices what is done to a package.
    fn notices(change: impl FnOnce(&Path)) -> bool {
        let package = tempfile::tempdir().expect("temporary directory");
        fs::create_dir(package.path().join("sub")).expect("writable");
        for name in ["agent.yaml", "sub/data"] {
            fs::write(package.path().join(name), "one").expect("writable");
        }
        let seal = Seal::put_on(package.path()).expect("readable");
        assert_eq!(Seal::of(package.path()).expect("readable"), seal);
        change(package.path());
        Seal::of(package.path()).is_ok_and(|now| now != seal)
    }

    #[test]
    fn changes_are_noticed() {
        assert!(!notices(|package| drop(fs::read(package.join("agent.yaml")).expect("readable"))));
        assert!(notices(|package| fs::write(package.join("more"), "").expect("writable")));
        assert!(notices(|package| fs::remove_file(package.join("sub/data")).expect("its own file")));
        assert!(notices(|package| {
            let (new, data) = (package.join("new"), package.join("sub/data"));
            fs::write(&new, "two").expect("writable");
            fs::set_permissions(&new, fs::Permissions::from_mode(0o444)).expect("its own file");
            fs::rename(new, data).expect("writable");
        }));
        // Written and set back, by a user who may do that.
        assert!(notices(|package| {
            let data = package.join("sub/data");
            let time = data.metadata().and_then(|metadata| metadata.modified()).expect("a time");
            fs::set_permissions(&data, fs::Permissions::from_mode(0o644)).expect("its own file");
            fs::write(&data, "two").expect("writable");
            fs::File::options().write(true).open(&data).and_then(|file| file.set_modified(time)).expect("settable");
            fs::set_permissions(&data, fs::Permissions::from_mode(0o444)).expect("its own file");
        }));
    }
}
