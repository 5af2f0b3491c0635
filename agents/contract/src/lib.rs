//! Agent contracts, checked and typed.
//!
//! Owns the YAML dialect ([`yaml`]), the rules of `agent.yaml` ([`Contract`]) and `skill.yaml` ([`Skill`]), JSON Schema
//! checks ([`schema`]), version requirements ([`requirement`]), the tests of an agent ([`fixture`]), the checks of its outputs
//! ([`Eval`]), the text of an input to search for ([`search_text`](search_text())), files of secrets ([`secret_file`]),
//! remote instances as a command line names them ([`Remote`]; federation will use it) and values in Python notation for
//! clients of Atlas for Python ([`python`]). Pure functions over bytes and values: it reads no files and does not know what
//! a contract means for a cluster. [`surrogates`] mends JSON texts that are passed on, and [`range`]
//! finds the numbers in them that nobody can read.

mod contract;
mod document;
mod eval;
pub mod fixture;
mod pip;
pub mod platform;
pub mod python;
pub mod range;
pub use atlas_types::requirement;
mod remote;
mod required_skill;
mod same;
pub mod schema;
mod search_text;
pub mod secret_file;
mod skill;
pub mod surrogates;
pub mod unquoted;
mod violation;
mod warning;
pub mod yaml;

pub use contract::{
    Contract, ContractError, Dependency, ExecMode, Expose, Hardware, KeyLimits, Knowledge, Llm, Mcp, Model,
    Permissions, Provider, ProviderKind, RateLimit, Replay, RequiredServer, Requires, Retry, SharedBy, StatedLimits,
    ToolPermission, parse, parse_offered,
};
pub use eval::{Check, CheckResult, EVAL_FILE, Eval, EvalError};
pub use pip::{check_pip_requirement, pip_requirement};
pub use remote::{Remote, RemoteError};
pub use required_skill::RequiredSkill;
pub use same::same;
pub use search_text::search_text;
pub use skill::{Skill, SkillError};
pub use violation::{Violation, joined, nearest, places};
pub use warning::Warning;
