//! Agent packages: the directory of an agent as one content-addressed archive (compatibility §24.1).
//!
//! [`discover`] finds agents in directories, [`pack`] creates the archive, [`unpack`] extracts it and [`inspect`] only
//! checks it. The same directory always gives the same bytes, so that the digest identifies the contents. Archives are
//! not trusted: the `walk` module accepts only plain files and directories. A [`FolderRegistry`] shares packages by files, each with its
//! [`Manifest`]; other crates store packages in a cluster.
//! A skill is packed in the same way, with another file at its root ([`pack_skill`], [`skill_of`]).

mod collect;
mod derive;
mod discover;
mod effect;
mod graph;
mod manifest;
mod npm;
mod overrides;
mod pack;
mod registry;
mod skill;
mod skill_agent;
mod toolbox;
mod unpack;
mod walk;

use atlas_contract::{Contract, ContractError};
use atlas_types::Digest;
use sha2::{Digest as _, Sha256};

pub use derive::{
    DefinitionError, TIERS, config, config_strictly, contract_of_folder, is_agent, model_name, placeholders,
};
pub use discover::{DiscoveredAgent, Discovery, SkippedPath, discover};
pub use effect::config_warnings;
pub use graph::{CONFIG_FILE, GRAPH_FILE, GraphError, GraphFolder, KnownNames, graph, graph_tools};
pub use manifest::{MANIFEST_BYTES_MAX, Manifest, ManifestError, Mismatch};
pub use overrides::{OVERRIDES_FILE, OverridesError};
pub use pack::{
    PackError, PackFile, Package, Variable, pack, pack_files, pack_in, pack_with_contract, pack_with_files,
};
pub use registry::{FolderRegistry, REGISTRY_SEARCH_LIMIT, RegistryError};
pub use skill::{
    SKILL_CODE, SKILL_FILE, SkillError, SkillFolder, SkillPackage, SkillRuntime, discover_skills, pack_skill, skill_of,
};
pub use skill_agent::{skill_agent, skill_agent_name};
pub use toolbox::{GlobalToolError, TOOLS_FOLDER, global_tool, is_packaged_tool, own_tools};
pub use unpack::{PARTIAL, PackageContents, UnpackError, contract_of, file_of, inspect, unpack};
pub use walk::{ArchiveError, Limits};

/// The file that marks a directory as an agent.
pub const CONTRACT_FILE: &str = "agent.yaml";

/// The digest of these bytes.
pub fn digest_of(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// Parses a contract, and checks its schemas and version requirements.
fn checked(text: &[u8]) -> Result<Contract, ContractError> {
    checked_for_later(atlas_contract::parse(text)?)
}

fn checked_for_later(contract: Contract) -> Result<Contract, ContractError> {
    contract.check_schemas()?;
    contract.check_requirements()?;
    Ok(contract)
}

/// Like [`checked`], for an agent that is being registered; stricter rules apply to it than to registered agents.
fn offered(text: &[u8]) -> Result<Contract, ContractError> {
    checked_for_later(atlas_contract::parse_offered(text)?)
}

#[cfg(test)]
mod tests;
