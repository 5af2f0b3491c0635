//! Requests to the running `atlasctl dev` to restart one of its processes. Each request is a file in the data folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folder of the requests.
const FOLDER: &str = "start";

/// Maximum length of a process name.
const NAME_BYTES_MAX: usize = 64;

/// Maximum number of requests that are taken at once.
const REQUESTS_MAX: usize = 64;

/// Requests a restart of `name`.
pub fn ask(root: &Path, name: &str) -> io::Result<()> {
    let folder = root.join(FOLDER);
    fs::create_dir_all(&folder)?;
    fs::write(path(root, name)?, "")
}

/// Removes and returns the pending requests.
pub fn take(root: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root.join(FOLDER)) else { return Vec::new() };
    let mut names = Vec::new();
    for entry in entries.flatten().take(REQUESTS_MAX) {
        // A file name that is not UTF-8 is not one of our requests.
        if fs::remove_file(entry.path()).is_ok()
            && let Ok(name) = entry.file_name().into_string()
        {
            names.push(name);
        }
    }
    names.sort();
    names
}

fn path(root: &Path, name: &str) -> io::Result<PathBuf> {
    let plain = name.len() <= NAME_BYTES_MAX && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !plain || name.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a valid process name"));
    }
    Ok(root.join(FOLDER).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_taken_once() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(take(dir.path()).is_empty());
        ask(dir.path(), "c2").expect("asked");
        ask(dir.path(), "c1").expect("asked");
        assert_eq!(take(dir.path()), ["c1", "c2"]);
        assert!(take(dir.path()).is_empty());
        assert!(ask(dir.path(), "../c1").is_err() && ask(dir.path(), "").is_err());
    }
}
