//! Backups in one directory, named after the time.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::words;

const BEGIN: &str = "atlas-";
const END: &str = ".tar";
/// What an interrupted backup leaves.
const PARTIAL: &str = ".partial";

/// The name of a backup at a time; later ones sort behind earlier ones.
pub(super) fn name(now: f64) -> String {
    format!("{BEGIN}{}{END}", words::compact_time(now))
}

/// Deletes all but the newest backups, and what interrupted ones left; returns what is deleted.
pub(super) fn prune(dir: &Path, newest: &str, keep: usize) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error| words::could_not("read", dir, &error);
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        names.extend(entry.map_err(failed)?.file_name().into_string().ok());
    }
    let mut deleted = Vec::new();
    for name in surplus(names, newest, keep) {
        let path = dir.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(words::could_not("delete", &path, &error)),
            _ => deleted.push(path),
        }
    }
    Ok(deleted)
}

/// The names to delete, oldest first. `newest` is the backup that was just made: a clock that went back does not delete it.
fn surplus(names: Vec<String>, newest: &str, keep: usize) -> Vec<String> {
    let (mut whole, mut partial) = (Vec::new(), Vec::new());
    for name in names {
        if is_of_series(&name) && name != newest {
            whole.push(name);
        } else if name.strip_suffix(PARTIAL).is_some_and(is_of_series) {
            partial.push(name);
        }
    }
    whole.sort_unstable();
    partial.sort_unstable();
    whole.truncate(whole.len().saturating_sub(keep.saturating_sub(1)));
    whole.append(&mut partial);
    whole
}

/// Whether a name is one of [`name`]: `atlas-`, a time, `.tar`.
fn is_of_series(name: &str) -> bool {
    let time = name.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END)).unwrap_or_default();
    let is_right = |(at, byte): (usize, u8)| match at {
        8 => byte == b'T',
        15 => byte == b'Z',
        _ => byte.is_ascii_digit(),
    };
    time.len() == 16 && time.bytes().enumerate().all(is_right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_backups_of_the_series_are_deleted() {
        assert_eq!(name(1_795_348_867.9), "atlas-20261122T120107Z.tar");
        let names = [
            "atlas-20261124T000000Z.tar",
            "atlas-20261122T000000Z.tar",
            "atlas-20261123T000000Z.tar",
            "atlas-20261121T000000Z.tar.partial",
            "atlas-20261121.tar",
            "atlas-20261121T00000xZ.tar",
            "before-upgrade.tar",
        ];
        let left = |newest: &str, keep| surplus(names.map(str::to_owned).to_vec(), newest, keep);
        let (old, older) = ("atlas-20261123T000000Z.tar", "atlas-20261122T000000Z.tar");
        let partial = "atlas-20261121T000000Z.tar.partial";
        assert_eq!(left("atlas-20261124T000000Z.tar", 1), [older, old, partial]);
        assert_eq!(left("atlas-20261124T000000Z.tar", 2), [older, partial]);
        assert_eq!(left("atlas-20261124T000000Z.tar", 9), [partial]);
        // The clock went back: the new backup has the oldest name.
        assert_eq!(left(older, 1), [old, "atlas-20261124T000000Z.tar", partial]);
    }

    #[test]
    fn what_is_deleted_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["atlas-20261122T000000Z.tar", "atlas-20261123T000000Z.tar", "other"] {
            fs::write(folder.path().join(name), "").expect("a file");
        }
        let deleted = prune(folder.path(), "atlas-20261123T000000Z.tar", 1).expect("deleted");
        assert_eq!(deleted, [folder.path().join("atlas-20261122T000000Z.tar")]);
        assert!(folder.path().join("other").exists() && folder.path().join("atlas-20261123T000000Z.tar").exists());
        assert!(prune(&folder.path().join("missing"), "a", 1).is_err());
    }
}
