//! Watched folders: read again after a change, once no more changes follow.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Interval between two checks of the folders.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Maximum depth of folders, the same as in discovery.
const DEPTH_MAX: usize = 16;

/// Maximum number of files per folder, so that a home directory does not keep a core busy.
const FILES_MAX: usize = 20_000;

/// Decides from fingerprints of the folders when to read them.
#[derive(Debug, Default)]
pub(crate) struct Stillness {
    /// The fingerprint when the folders were last read.
    done: Option<u64>,
    /// The fingerprint at the last check.
    last: Option<u64>,
}

impl Stillness {
    /// Whether to read the folders: they have changed since they were last read, but not since the last check, so that
    /// half-written files are not read.
    pub(crate) fn is_due(&mut self, print: u64) -> bool {
        // The first check has no earlier fingerprint to compare with.
        let still = self.last.is_none_or(|last| last == print);
        self.last = Some(print);
        still && self.done != Some(print)
    }

    /// Records that the folders were read with this fingerprint.
    pub(crate) fn read(&mut self, print: u64) {
        self.done = Some(print);
    }
}

/// A hash that changes when a file in the folders is added, removed, renamed, touched or resized.
pub(crate) fn fingerprint(folders: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for folder in folders {
        let mut left = FILES_MAX;
        walk(folder, 0, &mut left, &mut hasher);
    }
    hasher.finish()
}

fn walk(folder: &Path, depth: usize, left: &mut usize, hasher: &mut DefaultHasher) {
    let mut entries: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let Ok(metadata) = entry.metadata() else { continue };
        if *left == 0 || name.as_encoded_bytes().starts_with(b".") || name == "__pycache__" {
            continue;
        }
        *left -= 1;
        name.hash(hasher);
        if metadata.is_dir() && depth < DEPTH_MAX {
            walk(&entry.path(), depth + 1, left, hasher);
        } else {
            (metadata.len(), metadata.modified().ok()).hash(hasher);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_change_of_a_file_shows() {
        let dir = tempfile::tempdir().expect("a directory");
        let agent = dir.path().join("hello");
        fs::create_dir(&agent).expect("made");
        let look = || fingerprint(&[dir.path().to_owned()]);
        let empty = look();
        fs::write(agent.join("agent.yaml"), "a").expect("written");
        let written = look();
        fs::write(agent.join("agent.yaml"), "ab").expect("written");
        let longer = look();
        fs::rename(agent.join("agent.yaml"), agent.join("b")).expect("renamed");
        let renamed = look();
        fs::create_dir(agent.join("__pycache__")).expect("made");
        assert_eq!(look(), renamed);
        let all = [empty, written, longer, renamed];
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
    }

    #[test]
    fn what_moves_is_not_read() {
        let mut stillness = Stillness::default();
        assert!(stillness.is_due(1), "the first look");
        stillness.read(1);
        assert!(!stillness.is_due(1), "nothing changed");
        assert!(!stillness.is_due(2), "it may go on changing");
        assert!(!stillness.is_due(3), "it does");
        assert!(stillness.is_due(3), "it stood still");
        assert!(stillness.is_due(3), "it was not read yet");
        stillness.read(3);
        assert!(!stillness.is_due(3));
    }
}
