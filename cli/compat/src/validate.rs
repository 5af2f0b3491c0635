//! `atlas validate`: checks one contract.

use std::path::PathBuf;

use super::answer::{Answer, Refusal};
use super::file;

/// Options of `atlas validate`.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// An `agent.yaml`, or the folder that contains one.
    path: PathBuf,
}

pub(super) fn run(options: &Options) -> Answer {
    match atlas_contract::parse(&file::contract(&options.path)?) {
        Ok(contract) => Ok(format!("Valid: {} v{}\n", contract.name, contract.version)),
        Err(error) => Err(Refusal::new(format!("Invalid: {error}"))),
    }
}
