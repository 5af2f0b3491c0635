//! The contract of an agent, `agent.yaml`, typed (compatibility §2).
//!
//! [`parse`] reports all violations at once and warns about unknown keys. A member that was left out and one that
//! repeats its default are distinguished only where that matters (hardware).

mod keys;
mod limits;
mod members;
mod number;
mod read;
mod run;
mod write;

use std::collections::BTreeMap;

use atlas_types::{AgentKind, AgentName, Effects, Version};
use serde_json::Value;

use crate::requirement::Requirement;
use crate::schema::{SchemaError, Validator};
use crate::violation::{Violation, joined};
use crate::yaml::{self, YamlError};

/// Why a text is not a contract.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContractError {
    /// Not YAML.
    #[error("Invalid YAML: {0}")]
    Yaml(YamlError),
    /// YAML, but not a mapping.
    #[error("Contract must be a YAML mapping, got {got}")]
    NotAMapping {
        /// What it is, as Python names it: `list`, `str`, `NoneType`.
        got: &'static str,
    },
    /// Broken rules, all of them.
    #[error("Contract validation failed: {}", joined(.violations))]
    Rules {
        /// What is wrong.
        violations: Vec<Violation>,
    },
    /// A number or a word that cannot be read as what its key takes.
    #[error("Contract validation failed: {}", joined(.violations))]
    Conversion {
        /// What is wrong.
        violations: Vec<Violation>,
    },
}

impl ContractError {
    /// The broken rules, with their places.
    pub fn violations(&self) -> &[Violation] {
        match self {
            Self::Rules { violations } | Self::Conversion { violations } => violations,
            Self::Yaml(_) | Self::NotAMapping { .. } => &[],
        }
    }
}

/// A key that means nothing where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// JSON pointer of the key.
    pub pointer: String,
    /// The nearest key that would mean something there.
    pub suggestion: Option<String>,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "unknown key {} is ignored", self.pointer)?;
        match &self.suggestion {
            Some(meant) => write!(f, "; did you mean \"{meant}\"?"),
            None => Ok(()),
        }
    }
}

/// `model`: which model an agent would like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// `fast`, `balanced` or `powerful`.
    pub preference: String,
    /// Read, never used.
    pub override_allowed: bool,
}

/// `requires.knowledge`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knowledge {
    /// Whether the agent uses the knowledge base.
    pub enabled: bool,
    /// Domains it may read.
    pub read_domains: Vec<String>,
    /// Domains it may write.
    pub write_domains: Vec<String>,
}

/// One entry of `requires.agents`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// The other agent.
    pub name: String,
    /// Which of its versions, in the grammar of [`crate::requirement`].
    pub version: String,
}

/// `requires`: what an agent needs of the platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requires {
    /// All platform tools.
    pub platform_tools: bool,
    /// The right to spawn jobs.
    pub spawn_agents: bool,
    /// Skills by name.
    pub skills: Vec<String>,
    /// Shared memory.
    pub memory: bool,
    /// The knowledge base.
    pub knowledge: Knowledge,
    /// Other agents.
    pub agents: Vec<Dependency>,
}

/// Which program runs an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    /// A Python class.
    Python,
    /// Any program.
    Exec,
    /// A model in a tool loop.
    Llm,
}

impl ProviderKind {
    /// The word in contracts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Exec => "exec",
            Self::Llm => "llm",
        }
    }
}

/// Whether a program of the exec provider serves one job or many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecMode {
    /// One process per job.
    PerJob,
    /// One process for many jobs, a line of JSON each.
    Warm,
}

/// `provider`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// Which one.
    pub kind: ProviderKind,
    /// exec: program and arguments.
    pub command: Vec<String>,
    /// llm: the system text.
    pub system_prompt: String,
    /// llm: the system text if there is no other.
    pub focus: String,
    /// llm: `json` or `text`.
    pub output_format: String,
    /// llm: most requests a job.
    pub max_iterations: u64,
    /// exec: one process per job, or kept warm; none if the contract does not say.
    pub mode: Option<ExecMode>,
}

/// `hardware`, as stated: none is "not stated", which asks for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hardware {
    pub gpu: bool,
    /// Gigabytes on it; counts only with [`Self::gpu`] or [`Self::gpu_count`].
    pub gpu_vram_gb: u64,
    /// Gigabytes of memory.
    pub min_memory_gb: Option<u64>,
    /// Processor cores.
    pub min_cpu_cores: Option<u64>,
    /// `x86_64`, `arm64` or `any`.
    pub architecture: Option<String>,
    /// The only node that may run it; empty is any.
    pub node_affinity: String,
    /// Device files.
    pub device_access: Vec<String>,
    /// How many GPUs, each with the memory asked for.
    pub gpu_count: Option<u64>,
    /// Bytes on each GPU; wins over [`Self::gpu_vram_gb`], and asks for a GPU on its own.
    pub gpu_vram_bytes: Option<u64>,
    /// Labels that a node must have.
    pub node_labels: Option<BTreeMap<String, String>>,
}

/// `retry`.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// Most retries of a failed job.
    pub max_retries: i64,
    /// Seconds before the first.
    pub backoff_base: f64,
}

/// `permissions` (compatibility §25.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    /// Scopes of the file system.
    pub filesystem: Vec<String>,
    /// Scopes of the network.
    pub network: Vec<String>,
    /// Read, never used: spawning follows `requires.spawn_agents`.
    pub spawn: bool,
    /// Most memory.
    pub max_memory_mb: i64,
    /// Most processor time.
    pub max_cpu_seconds: i64,
    /// Names of the secrets that it needs.
    pub secrets: Vec<String>,
    /// `process` or `container`.
    pub isolation: String,
    /// The image of a container; empty is the policy's.
    pub container_image: String,
}

/// A contract that keeps every rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Contract {
    /// The agent's name.
    pub name: AgentName,
    pub version: Version,
    /// The same as it is written: leading zeros are no part of the number.
    pub version_text: String,
    /// Agent or orchestrator.
    pub kind: AgentKind,
    /// One sentence.
    pub description: String,
    /// What it takes.
    pub input_schema: Value,
    /// What it gives.
    pub output_schema: Value,
    /// Words to find it by.
    pub capabilities: Vec<String>,
    pub model: Model,
    /// What it needs.
    pub requires: Requires,
    /// What it asks of a node.
    pub hardware: Hardware,
    /// What follows a failure.
    pub retry: Retry,
    /// What it may do.
    pub permissions: Permissions,
    /// What runs it.
    pub provider: Provider,
    /// Seconds that one execution may take.
    pub execution_timeout: f64,
    /// What a lost attempt means; none is idempotent.
    pub effects: Option<Effects>,
    /// Most leases that one job may lose; none is 3.
    pub max_attempts: Option<u32>,
    /// Most jobs at once; none is unbounded.
    pub concurrency: Option<u32>,
    /// Seconds that a job may wait; none is for ever.
    pub queue_timeout: Option<f64>,
    /// Seconds that a start-up may take; none is the platform's default.
    pub startup_timeout: Option<f64>,
    /// Free-form labels.
    pub labels: Option<BTreeMap<String, String>>,
    /// Python packages to install, one pip requirement each.
    pub packages: Option<Vec<String>>,
    /// Keys that were ignored.
    pub warnings: Vec<Warning>,
}

/// Reads a contract. Its schemas are kept as they are: [`Contract::check_schemas`] checks them at registration.
pub fn parse(text: &[u8]) -> Result<Contract, ContractError> {
    let document = yaml::load_document(text, yaml::Budget::default()).map_err(ContractError::Yaml)?;
    read::contract(document)
}

impl Contract {
    /// Compiles both schemas: a wrong schema, a runtime error in Atlas for Python, is refused at registration.
    pub fn check_schemas(&self) -> Result<(Validator, Validator), ContractError> {
        let mut violations = Vec::new();
        let mut compile = |schema: &Value, at: &str| match Validator::compile(schema) {
            Ok(validator) => Some(validator),
            Err(error) => {
                violations.push(schema_violation(at, &error));
                None
            }
        };
        let input = compile(&self.input_schema, "/agent/input/schema");
        let output = compile(&self.output_schema, "/agent/output/schema");
        match (input, output) {
            (Some(input), Some(output)) => Ok((input, output)),
            _ => Err(ContractError::Rules { violations }),
        }
    }

    /// Reads the version ranges of required agents: one that says nothing would only be noticed by a job that fails.
    pub fn check_requirements(&self) -> Result<(), ContractError> {
        let wrong = self.requires.agents.iter().enumerate().filter_map(|(index, dependency)| {
            let error = Requirement::parse(&dependency.version).err()?;
            Some(Violation {
                pointer: format!("/agent/requires/agents/{index}/version"),
                rule: "requirement".to_owned(),
                message: error.to_string(),
                suggestion: None,
            })
        });
        let violations: Vec<Violation> = wrong.collect();
        if violations.is_empty() { Ok(()) } else { Err(ContractError::Rules { violations }) }
    }
}

fn schema_violation(at: &str, error: &SchemaError) -> Violation {
    let (pointer, message) = match error {
        SchemaError::Invalid { pointer, problem } if pointer == "/" => (at.to_owned(), problem.clone()),
        SchemaError::Invalid { pointer, problem } => (format!("{at}{pointer}"), problem.clone()),
        SchemaError::Limit { .. } => (at.to_owned(), error.to_string()),
    };
    Violation { pointer, rule: "schema".to_owned(), message, suggestion: None }
}

#[cfg(test)]
mod tests;
