//! `atlas validate`: checks one contract.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use super::{Answer, Refusal};

/// Maximum size of a contract.
const CONTRACT_BYTES_MAX: u64 = 1 << 20;

/// Options of `atlas validate`.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// An `agent.yaml`, or the folder that contains one.
    path: PathBuf,
}

pub(super) fn run(options: &Options) -> Answer {
    let path =
        if options.path.is_dir() { options.path.join(atlas_package::CONTRACT_FILE) } else { options.path.clone() };
    let absent = || Refusal::new(format!("File not found: {}", options.path.display()));
    let mut text = Vec::new();
    let file = File::open(&path).map_err(|_| absent())?;
    file.take(CONTRACT_BYTES_MAX + 1).read_to_end(&mut text).map_err(|_| absent())?;
    if text.len() as u64 > CONTRACT_BYTES_MAX {
        return Err(Refusal::new("Invalid: the file is too large for a contract"));
    }
    match atlas_contract::parse(&text) {
        Ok(contract) => Ok(format!("Valid: {} v{}\n", contract.name, contract.version)),
        Err(error) => Err(Refusal::new(format!("Invalid: {error}"))),
    }
}
