//! Python on this node.

use std::fs::File;
use std::path::{Path, PathBuf};

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
}
