//! The data directory: one worker at a time uses it, and it says which process used it before.

use std::fs::File;
use std::io;
use std::path::Path;

use atlas_env::{Files, LockError, lock};
use atlas_types::{BootId, NodeId};
use tracing::warn;

/// The file with the boot id of the latest process.
const BOOT: &str = "boot";

/// A data directory, locked by this process until this value is dropped.
#[derive(Debug)]
pub(crate) struct DataDir {
    pub(crate) lock: File,
    /// The boot id of the process that used it before, under the same name.
    pub(crate) previous: Option<BootId>,
}

impl DataDir {
    /// Locks the directory for this process of `node`. Blocks.
    pub(crate) fn open(files: &dyn Files, path: &Path, node: &NodeId) -> Result<Self, LockError> {
        files.create_dir_all(path)?;
        let lock = lock(&path.join("worker.lock"), &format!("worker {node}"))?;
        let previous = match files.read(&path.join(BOOT)) {
            Ok(bytes) => read(&bytes, node),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { lock, previous })
    }
}

/// Writes that the process with this boot id uses the directory `path` as `node`. It must be written before controllers know the boot id, and
/// not by a process that never connects: the next one would name it instead of the one whose session is still open. Blocks.
pub(crate) fn write_boot(files: &dyn Files, path: &Path, node: &NodeId, boot: BootId) {
    let file = path.join(BOOT);
    // Without it the next process may have to wait until the session of this one has ended.
    if let Err(error) = files.write_durably(&file, format!("{:032x} {node}\n", boot.0).as_bytes()) {
        warn!(%error, file = %file.display(), "could not write which process uses the data directory");
    }
}

/// A file of another node, or one that is damaged, names no process.
fn read(bytes: &[u8], node: &NodeId) -> Option<BootId> {
    let (boot, name) = std::str::from_utf8(bytes).ok()?.trim_end().split_once(' ')?;
    let boot = u128::from_str_radix(boot, 16).ok()?;
    (name == node.as_str()).then_some(BootId(boot))
}

#[cfg(test)]
mod tests {
    use atlas_env::SystemFiles;

    use super::*;

    fn node(name: &str) -> NodeId {
        name.parse().expect("a name")
    }

    fn open(path: &Path, name: &str) -> Result<DataDir, String> {
        DataDir::open(&SystemFiles, path, &node(name)).map_err(|error| error.to_string())
    }

    /// A process that connects, and ends. Returns the one before it.
    fn connected(path: &Path, name: &str, boot: u128) -> Option<BootId> {
        let data = open(path, name).expect("free");
        write_boot(&SystemFiles, path, &node(name), BootId(boot));
        data.previous
    }

    #[test]
    fn one_process_at_a_time_has_it_and_knows_the_one_before() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("data");
        let first = open(&path, "n1").expect("free");
        assert_eq!(first.previous, None);
        write_boot(&SystemFiles, &path, &node("n1"), BootId(1));
        let refused = format!("process {}, worker n1 uses it", std::process::id());
        assert_eq!(open(&path, "n2").map(|_| ()), Err(refused));
        drop(first);
        assert_eq!(connected(&path, "n1", 3), Some(BootId(1)));
        assert_eq!(connected(&path, "n2", 4), None, "another node");
        for damaged in ["", "1", "x n1", " n1"] {
            std::fs::write(path.join(BOOT), damaged).expect("written");
            assert_eq!(open(&path, "n1").expect("free").previous, None, "{damaged}");
        }
    }

    #[test]
    fn a_process_that_never_connects_does_not_count() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(connected(dir.path(), "n1", 1), None);
        for _ in 0..2 {
            assert_eq!(open(dir.path(), "n1").expect("free").previous, Some(BootId(1)));
        }
        assert_eq!(connected(dir.path(), "n1", 2), Some(BootId(1)));
        assert_eq!(open(dir.path(), "n1").expect("free").previous, Some(BootId(2)));
    }
}
