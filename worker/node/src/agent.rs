//! An agent's package, unpacked and read: what a slot needs to know of it.

use std::path::{Path, PathBuf};

use atlas_contract::schema::Validator;
use atlas_contract::{Contract, ContractError};
use atlas_types::Digest;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::provider::NOOP;

/// An agent version on this node. Shared by all its slots.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) digest: Digest,
    /// Where its package is unpacked.
    pub(crate) directory: PathBuf,
    pub(crate) contract: Contract,
    /// None if the schema accepts anything.
    output: Option<Validator>,
    /// Answers with its input, in this process.
    pub(crate) noop: bool,
}

/// Why an unpacked package is not an agent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentError {
    #[error("could not read agent.yaml of the package")]
    Read { source: std::io::Error },
    #[error("the package's agent.yaml is not a contract")]
    Contract { source: ContractError },
}

impl Agent {
    /// Most bytes of an `agent.yaml`.
    const CONTRACT_BYTES_MAX: u64 = 1 << 20;

    /// Reads the contract in `directory`. `noop` permits the in-process agent.
    pub(crate) fn load(digest: Digest, directory: &Path, noop: bool) -> Result<Self, AgentError> {
        let text = read_bounded(&directory.join("agent.yaml"), Self::CONTRACT_BYTES_MAX)
            .map_err(|source| AgentError::Read { source })?;
        let contract = atlas_contract::parse(&text).map_err(|source| AgentError::Contract { source })?;
        let (_, output) = contract.check_schemas().map_err(|source| AgentError::Contract { source })?;
        let output = (contract.output_schema != json!({"type": "object"})).then_some(output);
        let noop = noop && contract.provider.command == [NOOP];
        Ok(Self { digest, directory: directory.to_owned(), contract, output, noop })
    }

    /// Checks an output; the messages of all violations, joined.
    pub(crate) fn check_output(&self, output: &RawValue) -> Result<(), String> {
        let Some(validator) = &self.output else { return Ok(()) };
        let value: Value = serde_json::from_str(output.get()).map_err(|error| error.to_string())?;
        validator.validate(&value).map_err(|violations| {
            violations.iter().map(|violation| violation.message.as_str()).collect::<Vec<_>>().join("; ")
        })
    }
}

fn read_bounded(path: &Path, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}
