//! Shared memory: one text for all agents that may use it (compatibility §22).

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::files;

/// What an agent is told that uses the memory without requiring it.
pub const NOT_ENABLED: &str = "Memory not enabled — set requires.memory: true in contract";

/// Longest memory, in bytes.
pub const BYTES_MAX: usize = 4 << 20;

/// Why the memory was not read or changed.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error("the memory would have more than {BYTES_MAX} bytes")]
    Full,
    #[error("could not read the memory \"{}\"", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("could not write the memory \"{}\"", .path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// A memory with one more entry: a line of its own, whether or not the last one ended.
///
/// ```
/// use atlas_knowledge::memory::appended;
///
/// assert_eq!(appended("a", "b").unwrap(), "a\nb\n");
/// ```
pub fn appended(memory: &str, entry: &str) -> Result<String, MemoryError> {
    let end = if memory.is_empty() || memory.ends_with('\n') { "" } else { "\n" };
    if memory.len() + end.len() + entry.len() + 1 > BYTES_MAX {
        return Err(MemoryError::Full);
    }
    Ok(format!("{memory}{end}{entry}\n"))
}

/// A memory in a file. It must have one writer: two that append at the same time lose an entry.
#[derive(Debug, Clone)]
pub struct File {
    path: PathBuf,
}

impl File {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The memory; empty if there is no file.
    pub fn read(&self) -> Result<String, MemoryError> {
        let error = |source| MemoryError::Read { path: self.path.clone(), source };
        Ok(files::read(&self.path, BYTES_MAX).map_err(error)?.unwrap_or_default())
    }

    /// Replaces the memory.
    pub fn write(&self, memory: &str) -> Result<(), MemoryError> {
        if memory.len() > BYTES_MAX {
            return Err(MemoryError::Full);
        }
        // A link is kept, and its target replaced.
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        files::replace(&path, memory).map_err(|source| MemoryError::Write { path, source })
    }

    /// Adds an entry.
    pub fn append(&self, entry: &str) -> Result<(), MemoryError> {
        self.write(&appended(&self.read()?, entry)?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn entries_are_lines_of_their_own() {
        for (memory, entry, expected) in
            [("", "a", "a\n"), ("a", "b", "a\nb\n"), ("a\n", "b", "a\nb\n"), ("", "", "\n"), ("\n", "b\n", "\nb\n\n")]
        {
            assert_eq!(appended(memory, entry).expect("there is room"), expected, "{memory:?} {entry:?}");
        }
    }

    #[test]
    fn the_memory_is_bounded() {
        let full = "x".repeat(BYTES_MAX - 2);
        assert_eq!(appended(&full, "").expect("there is room").len(), BYTES_MAX);
        assert!(matches!(appended(&full, "a"), Err(MemoryError::Full)));
        let folder = tempfile::tempdir().expect("a folder");
        let file = File::new(folder.path().join("m"));
        assert!(matches!(file.write(&"x".repeat(BYTES_MAX + 1)), Err(MemoryError::Full)));
        assert_eq!(file.read().expect("no file"), "");
    }

    #[test]
    fn a_file_is_made_when_it_is_needed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = File::new(folder.path().join("a/b/memory.txt"));
        assert_eq!(file.read().expect("no file"), "");
        file.append("one").expect("appended");
        file.append("two").expect("appended");
        assert_eq!(file.read().expect("read"), "one\ntwo\n");
        file.write("three").expect("written");
        assert_eq!(file.read().expect("read"), "three");
        let names = fs::read_dir(folder.path().join("a/b")).expect("a folder").count();
        assert_eq!(names, 1, "nothing but the memory remains");
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(matches!(File::new(folder.path()).read(), Err(MemoryError::Read { .. })));
        let path = folder.path().join("m");
        fs::write(&path, [0xff]).expect("written");
        assert!(matches!(File::new(&path).append("a"), Err(MemoryError::Read { .. })));
        assert!(matches!(File::new(path.join("below")).write("a"), Err(MemoryError::Write { .. })));
    }

    proptest! {
        #[test]
        fn nothing_is_lost(entries in proptest::collection::vec("[a-z\n]{0,6}", 0..6)) {
            let memory = entries.iter().try_fold(String::new(), |memory, entry| appended(&memory, entry)).expect("room");
            let mut rest = memory.as_str();
            for entry in &entries {
                let at = rest.find(entry.as_str());
                prop_assert!(at.is_some());
                rest = &rest[at.unwrap_or(0) + entry.len()..];
            }
            prop_assert!(memory.is_empty() || memory.ends_with('\n'));
        }
    }
}
