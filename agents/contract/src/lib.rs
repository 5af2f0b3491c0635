//! Agent contracts: what an agent says of itself, checked and typed.
//!
//! Owns the YAML dialect ([`yaml`]), the rules of `agent.yaml` ([`Contract`]) and `skill.yaml` ([`Skill`]), JSON Schema
//! checks ([`schema`]), version requirements ([`requirement`]), the tests beside an agent ([`fixture`]) and what clients of the source
//! system read in Python's words ([`python`]). Pure functions over bytes and values: it reads no file, and what a contract means for a
//! cluster is decided elsewhere.
#![deny(missing_docs)]

mod contract;
mod document;
pub mod fixture;
pub mod python;
pub use atlas_types::requirement;
pub mod schema;
mod skill;
mod violation;
pub mod yaml;

pub use contract::{
    Contract, ContractError, Dependency, ExecMode, Hardware, Knowledge, Model, Permissions, Provider, ProviderKind,
    Requires, Retry, Warning, parse,
};
pub use skill::{Skill, SkillError};
pub use violation::{Violation, joined, nearest, places};
