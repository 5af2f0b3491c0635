//! The contract of an agent, `agent.yaml`, typed (compatibility §2).
//!
//! [`parse`] reports all violations at once and warns about unknown keys. A missing member is distinguished from a
//! member with the default value only where the difference matters (hardware).

mod durable;
mod effect;
mod keys;
mod limits;
mod llm;
mod mcp;
mod members;
mod read;
mod run;
mod write;

use std::collections::BTreeMap;

use atlas_types::{AgentKind, AgentName, Effects, Place, Version};
use serde_json::Value;

use crate::requirement::Requirement;
use crate::schema::{SchemaError, Validator};
use crate::unquoted;
use crate::violation::{Violation, joined};
use crate::warning::Warning;
use crate::yaml::{self, YamlError};

pub use durable::Replay;
pub use limits::parse_offered;
pub use llm::{Llm, ToolPermission};
pub use mcp::Mcp;

/// Why a text is not a contract.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContractError {
    /// The text is not YAML.
    #[error("Invalid YAML: {0}")]
    Yaml(YamlError),
    /// The document is not a mapping.
    #[error("Contract must be a YAML mapping, got {got}")]
    NotAMapping {
        /// The Python name of its type: `list`, `str`, `NoneType`.
        got: &'static str,
    },
    /// All violations of the rules.
    #[error("Contract validation failed: {}", joined(.violations))]
    Rules {
        /// The violations.
        violations: Vec<Violation>,
        /// The same in Atlas's own words; empty if these are.
        plain: Vec<Violation>,
    },
    /// A number or word that cannot be converted to the type of its key.
    #[error("Contract validation failed: {}", joined(.violations))]
    Conversion {
        /// The violations.
        violations: Vec<Violation>,
    },
}

impl ContractError {
    /// The violations, with their locations.
    pub fn violations(&self) -> &[Violation] {
        match self {
            Self::Rules { violations, .. } | Self::Conversion { violations } => violations,
            Self::Yaml(_) | Self::NotAMapping { .. } => &[],
        }
    }

    /// The violations in Atlas's own words, for people at a terminal.
    pub fn plain(&self) -> &[Violation] {
        match self {
            Self::Rules { plain, .. } if !plain.is_empty() => plain,
            other => other.violations(),
        }
    }
}

/// `model`: the preferred model of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// `fast`, `balanced` or `powerful`.
    pub preference: String,
    /// A model of the namespace, instead of a tier; or `{input.MEMBER}`: the one that the input names.
    pub name: Option<String>,
    /// Further models and tiers, which the nodes of a graph name.
    pub others: Vec<String>,
    /// Accepted for compatibility, but not used.
    pub override_allowed: bool,
}

/// Who shares the memory that the calls of an agent mean which name none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedBy {
    /// All agents of the namespace, as in Atlas for Python.
    Namespace,
    /// The jobs of the agent.
    Agent,
    /// The jobs of the principal that submitted the job.
    User,
    /// The jobs of the conversation.
    Conversation,
}

impl SharedBy {
    const ALL: [Self; 4] = [Self::Namespace, Self::Agent, Self::User, Self::Conversation];

    /// The word of contracts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Agent => "agent",
            Self::User => "user",
            Self::Conversation => "conversation",
        }
    }

    /// What `requires.memory` says: a word, or true for the namespace.
    pub fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(true) => Some(Self::Namespace),
            Value::String(word) => Self::ALL.into_iter().find(|by| by.as_str() == word),
            _ => None,
        }
    }

    fn to_json(self) -> Value {
        if self == Self::Namespace { Value::Bool(true) } else { self.as_str().into() }
    }
}

/// `requires.knowledge`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knowledge {
    /// Whether the agent uses the knowledge base.
    pub enabled: bool,
    /// Domains that the agent may read.
    pub read_domains: Vec<String>,
    /// Domains that the agent may write.
    pub write_domains: Vec<String>,
}

/// One entry of `requires.agents`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// The other agent.
    pub name: String,
    /// The version requirement, in the grammar of [`crate::requirement`].
    pub version: String,
}

/// `requires`: the platform features that an agent needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requires {
    /// All platform tools.
    pub platform_tools: bool,
    /// The right to spawn jobs.
    pub spawn_agents: bool,
    /// Skills by name.
    pub skills: Vec<String>,
    /// Shared memory; none if the agent uses none.
    pub memory: Option<SharedBy>,
    /// The knowledge base.
    pub knowledge: Knowledge,
    /// Document bases that the agent searches.
    pub documents: Vec<String>,
    /// Other agents.
    pub agents: Vec<Dependency>,
    /// MCP servers whose tools the agent uses.
    pub mcp_servers: Vec<RequiredServer>,
}

impl Requires {
    /// The tools for memory, knowledge and document bases that nodes of a graph can list.
    pub fn shared_tools(&self) -> Vec<&'static str> {
        let memory: &[&str] = if self.memory.is_some() { &["memory_read", "memory_append"] } else { &[] };
        let knowledge: &[&str] = if self.knowledge.enabled { &["knowledge_store", "knowledge_search"] } else { &[] };
        let documents: &[&str] = if self.documents.is_empty() { &[] } else { &["search_documents"] };
        [memory, knowledge, documents].concat()
    }
}

/// One entry of `requires.mcp_servers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredServer {
    /// The name of its object, or `{input.MEMBER}`: the one that the input names.
    pub name: String,
    /// The tools that the agent uses, `*` at the end of a name for any rest; none for all.
    pub tools: Option<Vec<String>>,
    /// How the model sees the tools.
    pub expose: Expose,
}

/// How a model sees the tools of an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expose {
    /// Each as a tool of its own.
    #[default]
    Tools,
    /// Through three tools that search, describe and call.
    Search,
}

/// The kind of program that runs an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    /// A Python class.
    Python,
    /// A module in JavaScript or TypeScript, which Node.js runs.
    Node,
    /// Any program.
    Exec,
    /// A model in a tool loop.
    Llm,
    /// A graph, from `graph.yaml`.
    Graph,
    /// A model in a tool loop with tools of its own, from `config.yaml`.
    LokiAgent,
    /// A tool of an MCP server, or an agent of another cluster.
    Mcp,
    /// A chain of other agents, which runs without a worker.
    Chain,
}

impl ProviderKind {
    /// The value in contracts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
            Self::Exec => "exec",
            Self::Llm => "llm",
            Self::Graph => "graph",
            Self::LokiAgent => "normal",
            Self::Mcp => "mcp",
            Self::Chain => "chain",
        }
    }

    /// The kind of place that its jobs take on a node.
    pub fn place(self) -> Place {
        match self {
            // A chain takes no place.
            Self::Python | Self::Node | Self::Exec | Self::Chain => Place::Process,
            Self::Llm | Self::Graph | Self::LokiAgent | Self::Mcp => Place::Llm,
        }
    }

    /// Whether its jobs call models.
    pub fn has_models(self) -> bool {
        matches!(self, Self::Llm | Self::Graph | Self::LokiAgent)
    }
}

/// Whether a program of the exec provider serves one job or many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecMode {
    /// One process per job.
    PerJob,
    /// One process for many jobs, with one line of JSON per job.
    Warm,
}

/// `provider`.
#[derive(Debug, Clone, PartialEq)]
pub struct Provider {
    /// The kind of provider.
    pub kind: ProviderKind,
    /// exec: program and arguments.
    pub command: Vec<String>,
    /// llm: the system prompt.
    pub system_prompt: String,
    /// llm: the system prompt if `system_prompt` is empty.
    pub focus: String,
    /// llm: `json` or `text`.
    pub output_format: String,
    /// llm: maximum number of requests per job.
    pub max_iterations: u64,
    /// exec: one process per job, or kept warm; none if the contract does not say.
    pub mode: Option<ExecMode>,
    /// llm: extensions.
    pub llm: Llm,
    /// mcp: what it calls.
    pub mcp: Option<Mcp>,
    /// chain: its steps.
    pub steps: Option<Vec<Value>>,
    /// chain: the orchestrator that decides on the jobs of its steps; empty if it names none.
    pub orchestrator: String,
}

/// `hardware` as written: none means that the contract does not have the member and requires nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hardware {
    pub gpu: bool,
    /// Gigabytes of memory on the GPU; ignored without [`Self::gpu`] or [`Self::gpu_count`].
    pub gpu_vram_gb: u64,
    /// Gigabytes of memory.
    pub min_memory_gb: Option<u64>,
    /// Processor cores.
    pub min_cpu_cores: Option<u64>,
    /// `x86_64`, `arm64` or `any`.
    pub architecture: Option<String>,
    /// The only node that may run the agent; if empty, any node may.
    pub node_affinity: String,
    /// Device files.
    pub device_access: Vec<String>,
    /// Number of GPUs, each with the required memory.
    pub gpu_count: Option<u64>,
    /// Bytes of memory on each GPU; takes precedence over [`Self::gpu_vram_gb`], and requires a GPU even without
    /// [`Self::gpu`].
    pub gpu_vram_bytes: Option<u64>,
    /// Labels that a node must have.
    pub node_labels: Option<BTreeMap<String, String>>,
}

/// `retry`.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// Maximum number of retries of a failed job.
    pub max_retries: i64,
    /// Seconds before the first retry.
    pub backoff_base: f64,
}

/// `rate`: how often jobs start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// So many may start in this time.
    pub jobs: u32,
    pub seconds: u32,
    /// So many may start at once after a pause; none means as many as start in one second.
    pub burst: Option<u32>,
}

/// `per_key`: limits that hold for each value of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyLimits {
    /// A JSON pointer into the input, or `label:NAME`.
    pub key: String,
    pub concurrency: Option<u32>,
    pub rate: Option<RateLimit>,
}

/// `permissions` (compatibility §25.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    /// Scopes of file system access.
    pub filesystem: Vec<String>,
    /// Scopes of network access.
    pub network: Vec<String>,
    /// Accepted for compatibility, but not used: `requires.spawn_agents` decides about spawning.
    pub spawn: bool,
    /// Memory limit.
    pub max_memory_mb: i64,
    /// Limit on processor time.
    pub max_cpu_seconds: i64,
    /// Names of the required secrets.
    pub secrets: Vec<String>,
    /// `process` or `container`.
    pub isolation: String,
    /// The container image; if empty, the policy's image.
    pub container_image: String,
}

impl Default for Permissions {
    /// The permissions of a contract that has no block `permissions`.
    fn default() -> Self {
        Self {
            filesystem: vec!["read".to_owned()],
            network: vec!["outbound".to_owned()],
            spawn: false,
            max_memory_mb: 512,
            max_cpu_seconds: 60,
            secrets: Vec::new(),
            isolation: "process".to_owned(),
            container_image: String::new(),
        }
    }
}

/// The limits on processes that `permissions` states; none for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatedLimits {
    /// `max_memory_mb`, in MiB.
    pub memory_mb: Option<u64>,
    /// `max_cpu_seconds`.
    pub cpu_seconds: Option<u64>,
}

/// A valid contract.
#[derive(Debug, Clone, PartialEq)]
pub struct Contract {
    /// The agent's name.
    pub name: AgentName,
    pub version: Version,
    /// The version as written; it may have leading zeros, which the parsed version does not.
    pub version_text: String,
    /// Agent or orchestrator.
    pub kind: AgentKind,
    /// One sentence.
    pub description: String,
    /// The JSON Schema of the input.
    pub input_schema: Value,
    /// The JSON Schema of the output.
    pub output_schema: Value,
    /// Capabilities by which the agent can be found.
    pub capabilities: Vec<String>,
    pub model: Model,
    /// The required platform features.
    pub requires: Requires,
    /// The hardware requirements on a node.
    pub hardware: Hardware,
    /// Retries after a failure.
    pub retry: Retry,
    /// The agent's permissions.
    pub permissions: Permissions,
    /// Whether the contract has the block `permissions`. Without it, a security policy may give other defaults.
    pub has_permissions: bool,
    /// True if that block states what the agent's processes may do: `filesystem` or `network`.
    pub states_access: bool,
    /// True if the contract states the model: the block `model`.
    pub states_model: bool,
    /// The limits that the block states. Its defaults are none: they were written down when nothing enforced them.
    pub stated_limits: StatedLimits,
    /// The program that runs the agent.
    pub provider: Provider,
    /// Time limit of one execution in seconds.
    pub execution_timeout: f64,
    /// Whether the program records its steps, so that a later attempt goes on after them.
    pub durable: bool,
    /// How strictly a durable program has to follow its record.
    pub replay: Replay,
    /// What follows a lost attempt; none means idempotent.
    pub effects: Option<Effects>,
    /// Maximum number of leases that one job may lose; none means 3.
    pub max_attempts: Option<u32>,
    /// Maximum number of concurrent jobs; none means no limit.
    pub concurrency: Option<u32>,
    /// How often jobs start; none means as soon as they can.
    pub rate: Option<RateLimit>,
    /// Limits for each value of a key.
    pub per_key: Option<KeyLimits>,
    /// Failed jobs in a row after which no more start for a time; none means no limit.
    pub max_failures: Option<u32>,
    /// The name for people; none means the agent's name in title case.
    pub title: Option<String>,
    /// Who shares a conversation with the agent: `shared`, `connection` or `request`; none means `shared`.
    pub conversation: Option<String>,
    /// Longest wait of a job in the queue, in seconds; none means no limit.
    pub queue_timeout: Option<f64>,
    /// Time limit of the start-up in seconds; none means the platform's default.
    pub startup_timeout: Option<f64>,
    /// Free-form labels.
    pub labels: Option<BTreeMap<String, String>>,
    /// Python packages to install, one pip requirement each.
    pub packages: Option<Vec<String>>,
    /// Warnings about unknown keys, which are ignored, and about values that are probably not what is meant.
    pub warnings: Vec<Warning>,
}

/// Parses a contract. It does not check the schemas; [`Contract::check_schemas`] does that at registration.
pub fn parse(text: &[u8]) -> Result<Contract, ContractError> {
    let document = yaml::load_document(text, yaml::Budget::default()).map_err(ContractError::Yaml)?;
    let mut contract = read::contract(document)?;
    contract.warnings.extend(unquoted::warnings(text, "agent"));
    Ok(contract)
}

impl Contract {
    /// Compiles both schemas, so that registration refuses an invalid schema. In Atlas for Python it is an error at run
    /// time.
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
            _ => Err(ContractError::Rules { violations, plain: Vec::new() }),
        }
    }

    /// Checks the version requirements of required agents; otherwise an invalid one would be noticed only when a job
    /// fails.
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
        if violations.is_empty() { Ok(()) } else { Err(ContractError::Rules { violations, plain: Vec::new() }) }
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
