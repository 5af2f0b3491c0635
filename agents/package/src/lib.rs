//! Agent packages: the directory of an agent as one content-addressed archive (compatibility §24.1).
//!
//! [`discover`] finds agents in directories, [`pack`] makes the archive, [`unpack`] extracts it and [`inspect`] only
//! checks it. The same directory always gives the same bytes, so that the digest names the content. Archives are not
//! trusted: the strict walk in [`Limits`]' module accepts plain files and directories and nothing else. Storing and
//! publishing packages is the business of other crates.

mod discover;
mod pack;
mod unpack;
mod walk;

use atlas_contract::{Contract, ContractError};
use atlas_types::Digest;
use sha2::{Digest as _, Sha256};

pub use discover::{DiscoveredAgent, Discovery, Skipped, discover};
pub use pack::{PackError, PackFile, Package, pack, pack_files};
pub use unpack::{Inspected, PARTIAL, UnpackError, contract_of, inspect, unpack};
pub use walk::{ArchiveError, Limits};

/// The file that makes a directory an agent.
pub const CONTRACT_FILE: &str = "agent.yaml";

/// The digest by which these bytes are known.
pub fn digest_of(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// Reads a contract and checks what is in it for later: schemas, and ranges of versions.
fn checked(text: &[u8]) -> Result<Contract, ContractError> {
    let contract = atlas_contract::parse(text)?;
    contract.check_schemas()?;
    contract.check_requirements()?;
    Ok(contract)
}

/// The same of an agent that is offered, to which stricter rules apply than to one that is registered.
fn offered(text: &[u8]) -> Result<Contract, ContractError> {
    let contract = checked(text)?;
    contract.check_limits()?;
    Ok(contract)
}

#[cfg(test)]
mod tests;
