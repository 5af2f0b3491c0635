//! Files that a command reads: contracts and policies.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::answer::Refusal;

/// Maximum size of a file; the readers of YAML have the same limit.
const BYTES_MAX: u64 = 1 << 20;

/// The contents of a file; the refusals are those of Atlas for Python.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Refusal> {
    named(path, path)
}

/// The contract in a file, or in the folder of an agent.
pub(super) fn contract(path: &Path) -> Result<Vec<u8>, Refusal> {
    if path.is_dir() { named(&path.join(atlas_package::CONTRACT_FILE), path) } else { read(path) }
}

/// Reads a file, and names it in refusals as the command line does.
fn named(path: &Path, name: &Path) -> Result<Vec<u8>, Refusal> {
    let absent = || Refusal::new(format!("File not found: {}", name.display()));
    let mut text = Vec::new();
    let file = File::open(path).map_err(|_| absent())?;
    file.take(BYTES_MAX + 1).read_to_end(&mut text).map_err(|_| absent())?;
    if text.len() as u64 > BYTES_MAX {
        return Err(Refusal::new("Invalid: the file has more than 1048576 bytes"));
    }
    Ok(text)
}
