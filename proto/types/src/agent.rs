//! Agents as the state knows them: the contract's decisions as data, and the contract itself as opaque bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{
    AgentName, Circuit, ClusterTime, Demand, Digest, Micros, Namespace, Payload, PerKey, Principal, Rate, Seq,
    Timestamp, Version,
};

/// What a contract's `type` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentKind {
    /// Runs jobs.
    Agent,
    /// Decides on each job before it is placed.
    Orchestrator,
}

/// What a contract says of an attempt that was lost half-way: may the job run again?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effects {
    /// No effects outside: run again.
    Pure,
    /// Running again does no harm: run again. The default.
    Idempotent,
    /// An agent's reconcile call can tell what happened: in doubt until then.
    Reconcilable,
    /// At most once: in doubt until a person decides.
    Once,
}

/// `retry` of a contract (compatibility §13.6): a failed job is followed by a new, linked job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetryRule {
    /// Most retries of one family; 0 is none. [`Self::RETRIES_MAX`] bounds it.
    pub max_retries: u32,
    /// The wait before retry n is this times 2^n, n from 0, and at least [`Self::BACKOFF_MIN`].
    pub backoff_base: Micros,
}

impl RetryRule {
    /// Most retries of one family, whatever the rule says.
    pub const RETRIES_MAX: u32 = 1_000;
    /// Shortest wait before a retry, so that a job which always fails does not keep a cluster busy.
    pub const BACKOFF_MIN: Micros = Micros::from_millis(100);
}

/// Time limits of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Longest wait before the first grant; none waits for ever.
    pub queue: Option<Micros>,
    /// Longest start-up of a slot.
    pub startup: Micros,
    /// Longest time of one attempt, start-up not counted.
    pub execution: Micros,
}

/// How jobs of one agent version run; shared by the version and all its jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSpec {
    /// What it asks of a node.
    pub demand: Demand,
    /// What a lost attempt means.
    pub effects: Effects,
    /// Most leases one job may lose before it fails (`lease_lost`), 1 to 3.
    pub max_attempts: u32,
    /// Most jobs of this agent name that may run at once; none is unbounded.
    pub concurrency: Option<u32>,
    /// How often jobs of this agent name may start; none is unbounded.
    pub rate: Option<Rate>,
    /// Limits for each value of a key.
    pub per_key: Option<PerKey>,
    /// After so many failed attempts in a row the circuit of the version opens; none never opens it.
    pub failures_max: Option<u32>,
    /// Retries after a failure.
    pub retry: RetryRule,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Whether runs carry its jobs: these never get a lease, and nothing of the demand is taken for them.
    pub carried: bool,
    /// Whether its jobs record the steps of their own code: a retry goes on after the recorded ones.
    pub durable: bool,
    /// Whether its jobs may spawn others (`requires.spawn_agents`).
    pub spawns: bool,
    /// Agents without which its jobs fail (`requires.agents`), in the order of the contract; at most [`Self::REQUIRES_MAX`].
    pub requires: Vec<RequiredAgent>,
    /// Names of the secrets that its jobs get (`permissions.secrets`), sorted; at most [`Self::SECRETS_MAX`].
    pub secrets: Vec<String>,
    /// The model, or the tier of models, that its jobs call; none for agents that call none through the worker.
    pub model: Option<String>,
    /// Further models and tiers that its jobs call by these names (`model.others`), sorted; at most [`Self::OTHER_MODELS_MAX`].
    pub other_models: Vec<String>,
    /// Names of the MCP servers that its jobs use (`requires.mcp_servers`), in order; at most [`Self::SERVERS_MAX`].
    pub servers: Vec<String>,
}

/// An agent that another one requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredAgent {
    /// As the contract has it: no agent may have such a name.
    pub name: String,
    /// As the contract has it, in the grammar of [`crate::requirement`].
    pub version: String,
}

impl RequiredAgent {
    /// The error of a job whose agent lacks others, with the text of Atlas for Python.
    pub fn told_missing(missing: &[String]) -> String {
        format!("Missing agent dependencies: {}. Install with: atlas registry pull <name>", missing.join(", "))
    }
}

impl RunSpec {
    /// Most required agents that a spec names. For a contract with more it lists none, and the worker gets the list of missing agents.
    pub const REQUIRES_MAX: usize = 64;
    /// Most secrets that a spec names. For a contract with more, or with a longer name, it lists none.
    pub const SECRETS_MAX: usize = 64;
    /// Most further models that a spec names; for a contract with more it lists none.
    pub const OTHER_MODELS_MAX: usize = 15;
    /// Most MCP servers that a spec names; for a contract with more it lists none.
    pub const SERVERS_MAX: usize = 16;
    /// Most bytes of the name of a secret, a model or a server.
    pub const NAME_BYTES_MAX: usize = 128;

    /// True if an attempt may run only after its start is committed: what must not run twice must be known to have begun.
    pub fn needs_start(&self) -> bool {
        matches!(self.effects, Effects::Once | Effects::Reconcilable) || self.max_attempts == 1
    }
}

/// One registered version of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentVersion {
    /// Whose it is.
    pub namespace: Namespace,
    pub name: AgentName,
    pub version: Version,
    /// Names its package in the artifact store; jobs pin it.
    pub digest: Digest,
    /// Size of the package.
    pub package_bytes: u64,
    /// Agent or orchestrator.
    pub kind: AgentKind,
    /// For search.
    pub capabilities: Vec<String>,
    /// The normalised contract, JSON.
    pub contract: Payload,
    /// How its jobs run.
    pub spec: Arc<RunSpec>,
    /// Free-form labels.
    pub labels: BTreeMap<String, String>,
    /// When it was registered.
    pub registered_at: Timestamp,
    /// The entry that registered it.
    pub registered_seq: Seq,
    /// Retired versions take no new jobs; running and waiting ones finish.
    pub retired: bool,
    /// Since when it is retired, on the clock of timeouts; none if it is not, or was retired below feature level 5.
    pub retired_at: Option<ClusterTime>,
    /// Why the version is deprecated. It goes on taking them.
    pub deprecated: Option<Arc<str>>,
    pub circuit: Circuit,
    /// The number of its package: 1, and one more each time another package replaces it. Not counted below [`crate::level::REVISIONS`].
    pub revision: u32,
    /// Who registered it; none below that level.
    pub registered_by: Option<Principal>,
    /// The packages it had before, the oldest first; at most [`Self::REVISIONS_MAX`].
    pub revisions: Vec<AgentRevision>,
}

impl AgentVersion {
    /// Most earlier packages that a version keeps.
    pub const REVISIONS_MAX: usize = 10;
}

/// A package that an agent version had before another one replaced it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRevision {
    /// See [`AgentVersion::revision`].
    pub number: u32,
    /// Names the package in the artifact store, which keeps it as long as the revision is listed.
    pub digest: Digest,
    pub package_bytes: u64,
    pub registered_at: Timestamp,
    pub registered_by: Option<Principal>,
}

/// The agent version that a job runs: resolved once, at the door, and never again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPin {
    pub version: Version,
    /// Its package.
    pub digest: Digest,
}
