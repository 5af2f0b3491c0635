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
    /// Locks the directory for the process of `node` with this boot id. Blocks.
    pub(crate) fn open(files: &dyn Files, path: &Path, node: &NodeId, boot: BootId) -> Result<Self, LockError> {
        files.create_dir_all(path)?;
        let lock = lock(&path.join("worker.lock"), &format!("worker {node}"))?;
        let file = path.join(BOOT);
        let previous = match files.read(&file) {
            Ok(bytes) => read(&bytes, node),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        // Without it the next process may have to wait until the session of this one has ended.
        if let Err(error) = files.write_durably(&file, format!("{:032x} {node}\n", boot.0).as_bytes()) {
            warn!(%error, file = %file.display(), "could not write which process uses the data directory");
        }
        Ok(Self { lock, previous })
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

    fn open(path: &Path, name: &str, boot: u128) -> Result<DataDir, String> {
        DataDir::open(&SystemFiles, path, &node(name), BootId(boot)).map_err(|error| error.to_string())
    }

    #[test]
    fn one_process_at_a_time_has_it_and_knows_the_one_before() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("data");
        let first = open(&path, "n1", 1).expect("free");
        assert_eq!(first.previous, None);
        let refused = format!("process {}, worker n1 uses it", std::process::id());
        assert_eq!(open(&path, "n2", 2).map(|_| ()), Err(refused));
        drop(first);
        assert_eq!(open(&path, "n1", 3).expect("free").previous, Some(BootId(1)));
        assert_eq!(open(&path, "n2", 4).expect("free").previous, None, "another node");
        for damaged in ["", "1", "x n1", " n1"] {
            std::fs::write(path.join(BOOT), damaged).expect("written");
            assert_eq!(open(&path, "n1", 5).expect("free").previous, None, "{damaged}");
        }
    }
}
