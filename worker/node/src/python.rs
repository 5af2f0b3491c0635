//! Python on this node: the interpreter, and the location of our `atlas` package.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rust_embed::RustEmbed;
use sha2::{Digest as _, Sha256};

use crate::interpreter::{self, Finder};

/// An environment with the packages of an agent. It is not removed while this value exists.
#[derive(Debug)]
pub(crate) struct Environment {
    /// Its interpreter.
    pub(crate) python: PathBuf,
    /// A shared lock, held by all users in this process and others.
    _lock: File,
}

impl Environment {
    /// The environment of an interpreter, under a lock.
    pub(crate) fn new(python: PathBuf, lock: File) -> Self {
        Self { python, _lock: lock }
    }
}

/// The oldest supported version.
const OLDEST: (u32, u32) = (3, 11);

/// The names to try, in this order.
const NAMES: [&str; 4] = ["python3.13", "python3.12", "python3.11", "python3"];

/// Prints the version and the path of the interpreter. Using this path avoids the slow shims of version managers.
const PROBE: &str = "import sys; print(*sys.version_info[:3], sys.executable)";

/// An interpreter that is new enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Python {
    pub program: PathBuf,
    /// Its version, major and minor.
    pub version: (u32, u32),
    /// The third number of its version.
    pub patch: u32,
}

impl Python {
    /// Finds an interpreter: `chosen` if given, otherwise the known names in `PATH`. Blocks, for about 100 ms if a
    /// version manager answers to these names.
    pub fn find(chosen: Option<&Path>) -> Result<Self, String> {
        let names = interpreter::names(&NAMES, chosen);
        let found = interpreter::first(&names, &["-I", "-S", "-c", PROBE], |printed| {
            read(printed).filter(|python| python.version >= OLDEST)
        });
        found.ok_or_else(|| {
            let names: Vec<_> = names.iter().map(|name| name.display().to_string()).collect();
            format!("this node has no Python {}.{} or later (tried {})", OLDEST.0, OLDEST.1, names.join(", "))
        })
    }

    /// Finds it once.
    pub(crate) fn finder(chosen: Option<PathBuf>) -> Finder<Self> {
        Finder::new(&NAMES, chosen, Self::find)
    }
}

fn read(printed: &[u8]) -> Option<Python> {
    let line = String::from_utf8_lossy(printed);
    let mut words = line.trim().splitn(4, ' ');
    let version = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let patch = words.next()?.parse().ok()?;
    let program = PathBuf::from(words.next()?);
    program.is_absolute().then_some(Python { program, version, patch })
}

/// Our pure-Python package, compiled in.
#[derive(RustEmbed)]
#[folder = "../../agents/sdk/python"]
struct Sdk;

/// Writes the package under `data_dir`, once per version, and returns the directory for `PYTHONPATH`.
pub(crate) fn unpack_sdk(data_dir: &Path) -> io::Result<PathBuf> {
    // The build directory may contain caches of an interpreter.
    let mut names: Vec<_> = Sdk::iter().filter(|name| name.ends_with(".py")).collect();
    names.sort();
    let mut hasher = Sha256::new();
    for name in &names {
        let file = Sdk::get(name).ok_or(io::ErrorKind::NotFound)?;
        hasher.update(name.as_bytes());
        hasher.update(file.metadata.sha256_hash());
    }
    let version: String = hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let directory = data_dir.join("sdk").join(version);
    if directory.is_dir() {
        return Ok(directory);
    }
    // Written under a temporary name and renamed, because another worker may do the same in this directory at the same
    // time.
    let temporary = data_dir.join("sdk").join(format!(".{}.tmp", std::process::id()));
    for name in &names {
        let path = temporary.join(name.as_ref());
        std::fs::create_dir_all(path.parent().unwrap_or(&temporary))?;
        std::fs::write(path, Sdk::get(name).ok_or(io::ErrorKind::NotFound)?.data)?;
    }
    match std::fs::rename(&temporary, &directory) {
        Err(_) if directory.is_dir() => std::fs::remove_dir_all(&temporary)?,
        other => other?,
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shim_that_prints_nothing_is_no_interpreter() {
        assert_eq!(read(b""), None);
        assert_eq!(read(b"pyenv: python3.13: command not found\n"), None);
        let program = PathBuf::from("/opt/my python/bin/python3");
        assert_eq!(read(b"3 13 2 /opt/my python/bin/python3\n"), Some(Python { program, version: (3, 13), patch: 2 }));
    }

    #[test]
    fn the_package_is_written_once() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let sdk = unpack_sdk(dir.path()).expect("writable");
        assert!(sdk.join("atlas/runtime/base.py").is_file());
        assert!(sdk.join("atlas/_host.py").is_file());
        assert!(sdk.join("atlas/mediation/analyzer.py").is_file());
        assert_eq!(unpack_sdk(dir.path()).expect("there already"), sdk);
    }
}
