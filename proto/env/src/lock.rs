//! Locks of folders: one process at a time, and the others are told which.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// The most that is read of what a holder wrote.
const HOLDER_BYTES_MAX: u64 = 256;

/// Why a folder could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has the lock.
    #[error("{0} uses it")]
    Held(String),
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] io::Error),
}

/// Locks a file, which is created if it is missing, and writes into it who has it: this process and `role`, such as `worker n1`. The system
/// releases the lock when the file is dropped or the process ends, even if it is killed.
pub fn lock(path: &Path, role: &str) -> Result<File, LockError> {
    let mut file = File::options().create(true).truncate(false).read(true).write(true).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(LockError::Held(holder(&file))),
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    // What it says is for people alone: on a full disk the lock still holds.
    let _ = file.write_all(format!("process {}, {role}\n", std::process::id()).as_bytes());
    Ok(file)
}

/// Who has the lock, as it wrote there.
fn holder(file: &File) -> String {
    let mut text = String::new();
    // A program of another version wrote nothing.
    let _ = file.take(HOLDER_BYTES_MAX).read_to_string(&mut text);
    let line: String = text.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).collect();
    if line.is_empty() { "another process".to_owned() } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_was_first() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("lock");
        std::fs::write(&path, "process 1, a role that is longer than the next one\n").expect("written");
        let first = lock(&path, "worker n1").expect("free");
        let told = lock(&path, "worker n2").expect_err("held").to_string();
        assert_eq!(told, format!("process {}, worker n1 uses it", std::process::id()));
        drop(first);
        lock(&path, "worker n2").expect("free again");
    }

    #[test]
    fn what_a_file_says_is_bounded() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("lock");
        let held = File::create(&path).expect("made");
        held.lock().expect("free");
        assert_eq!(lock(&path, "x").expect_err("held").to_string(), "another process uses it");
        std::fs::write(&path, [b"a\x07b".as_slice(), &[b'c'; 1_000]].concat()).expect("written");
        let told = lock(&path, "x").expect_err("held").to_string();
        assert!(told.starts_with("abc") && told.len() < 300, "{told}");
    }
}
