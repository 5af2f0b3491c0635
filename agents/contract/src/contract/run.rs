//! The parts of a contract that the cluster needs: demand, retries, time limits.

use std::collections::BTreeSet;

use atlas_types::{
    AgentKind, Architecture, Demand, Effects, Micros, NodeId, PerKey, Place, Rate, RequiredAgent, RetryRule, RunSpec,
    Timeouts,
};

use super::{Contract, Dependency, Hardware, ProviderKind, RateLimit};

/// Maximum number of leases that one job may lose, if the contract does not say.
const ATTEMPTS_DEFAULT: u32 = 3;

/// Time limit for the start-up of a slot, if the contract does not say (compatibility §26).
const STARTUP_DEFAULT: Micros = Micros::from_secs(30);

impl Contract {
    /// The settings for jobs of this version.
    pub fn run_spec(&self) -> RunSpec {
        RunSpec {
            demand: self.demand(),
            // The record of a durable program says what was under way when an attempt is lost; its contract's effects are those of steps.
            effects: self.effects.filter(|_| !self.durable).unwrap_or(Effects::Idempotent),
            max_attempts: self.max_attempts.unwrap_or(ATTEMPTS_DEFAULT),
            concurrency: self.concurrency,
            failures_max: self.max_failures,
            retry: RetryRule {
                max_retries: u32::try_from(self.retry.max_retries.max(0))
                    .unwrap_or(u32::MAX)
                    .min(RetryRule::RETRIES_MAX),
                backoff_base: micros(self.retry.backoff_base),
            },
            timeouts: Timeouts {
                queue: self.queue_timeout.map(micros),
                startup: self.startup_timeout.map_or(STARTUP_DEFAULT, micros),
                execution: micros(self.execution_timeout),
            },
            carried: self.provider.kind == ProviderKind::Chain,
            durable: self.durable,
            spawns: self.requires.spawn_agents,
            requires: self.required_agents(),
            secrets: self.secrets(),
            model: (self.calls_models()).then(|| self.model.name.as_ref().unwrap_or(&self.model.preference).clone()),
            other_models: self.other_models(),
            servers: self.servers(),
            rate: self.rate.map(RateLimit::rate),
            per_key: self.per_key.as_ref().map(|limits| PerKey {
                key: limits.key.as_str().into(),
                concurrency: limits.concurrency,
                rate: limits.rate.map(RateLimit::rate),
            }),
        }
    }

    /// What its jobs need of a node. That it runs containers is a label of the node: a node without them must not get the job.
    fn demand(&self) -> Demand {
        let mut demand = Demand {
            place: self.provider.kind.place(),
            python: self.needs_python(),
            nodejs: self.needs_nodejs(),
            ..self.hardware.demand()
        };
        if self.needs_container() {
            demand.labels.entry(Self::CONTAINER.to_owned()).or_insert_with(|| Self::AVAILABLE.to_owned());
        }
        demand
    }

    /// Whether its jobs call models of the namespace. Programs in Python and of Node.js do if the contract states one: others have no use
    /// for its key.
    pub fn calls_models(&self) -> bool {
        let can_call = matches!(self.provider.kind, ProviderKind::Python | ProviderKind::Node);
        self.provider.kind.has_models() || (can_call && self.kind == AgentKind::Agent && self.states_model)
    }

    /// The label of nodes that run agents in containers.
    pub const CONTAINER: &str = "container";
    /// The value of [`CONTAINER`](Self::CONTAINER).
    pub const AVAILABLE: &str = "available";

    /// Whether its jobs run in a container.
    pub fn needs_container(&self) -> bool {
        self.permissions.isolation == "container"
            && matches!(self.provider.kind, ProviderKind::Python | ProviderKind::Node | ProviderKind::Exec)
    }

    /// Whether a node needs a Python interpreter for its jobs. In a container, the image has one.
    pub fn needs_python(&self) -> bool {
        self.provider.kind == ProviderKind::Python && self.permissions.isolation != "container"
    }

    /// Whether a node needs Node.js for its jobs. In a container, the image has one.
    pub fn needs_nodejs(&self) -> bool {
        self.provider.kind == ProviderKind::Node && self.permissions.isolation != "container"
    }

    /// The names of the secrets, each once.
    fn secrets(&self) -> Vec<String> {
        let names: BTreeSet<_> = self.permissions.secrets.iter().cloned().collect();
        let fits = |name: &String| name.len() <= RunSpec::NAME_BYTES_MAX;
        let bounded = names.len() <= RunSpec::SECRETS_MAX && names.iter().all(fits);
        if bounded { names.into_iter().collect() } else { Vec::new() }
    }

    /// The names of further models, each once.
    fn other_models(&self) -> Vec<String> {
        if !self.provider.kind.has_models() {
            return Vec::new();
        }
        let own = self.model.name.as_ref().unwrap_or(&self.model.preference);
        let names: BTreeSet<_> = self.model.others.iter().filter(|name| *name != own).cloned().collect();
        let fits = |name: &String| name.len() <= RunSpec::NAME_BYTES_MAX;
        let bounded = names.len() <= RunSpec::OTHER_MODELS_MAX && names.iter().all(fits);
        if bounded { names.into_iter().collect() } else { Vec::new() }
    }

    /// The names of the MCP servers, each once.
    fn servers(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let required = self.requires.mcp_servers.iter().map(|server| server.name.as_str());
        let called = self.provider.mcp.iter().map(|mcp| mcp.server.as_str());
        // A skill `server.tool` is a tool of a server if there is such a server.
        let skills = self.requires.skills.iter().filter_map(|skill| Some(skill.split_once('.')?.0));
        for name in required.chain(called).chain(skills.filter(|name| *name != "atlas")) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        let fits = |name: &String| name.len() <= RunSpec::NAME_BYTES_MAX;
        let bounded = names.len() <= RunSpec::SERVERS_MAX && names.iter().all(fits);
        if bounded { names } else { Vec::new() }
    }

    fn required_agents(&self) -> Vec<RequiredAgent> {
        let agents = &self.requires.agents;
        let bounded = if agents.len() > RunSpec::REQUIRES_MAX { &[] } else { &agents[..] };
        let named = |agent: &Dependency| RequiredAgent { name: agent.name.clone(), version: agent.version.clone() };
        bounded.iter().map(named).collect()
    }
}

impl RateLimit {
    fn rate(self) -> Rate {
        Rate::new(self.jobs, self.seconds.into(), self.burst)
    }
}

impl Hardware {
    /// The demand as written in the contract. The defaults of one core and one gigabyte apply only if an operator
    /// declared the node's inventory; [`Demand`] handles that.
    pub fn demand(&self) -> Demand {
        let gigabytes = |amount: u64| amount.saturating_mul(1 << 30);
        let gpus = match self.gpu_count {
            Some(count) => saturated(count),
            None => u32::from(self.gpu || self.gpu_vram_bytes.is_some_and(|bytes| bytes > 0)),
        };
        let vram_bytes = match self.gpu_vram_bytes {
            Some(bytes) => bytes,
            // Memory without a GPU is ignored (compatibility §8.2).
            None if self.gpu || self.gpu_count.is_some() => gigabytes(self.gpu_vram_gb),
            None => 0,
        };
        Demand {
            cores: self.min_cpu_cores.map_or(0, saturated),
            memory_bytes: self.min_memory_gb.map_or(0, gigabytes),
            gpus,
            vram_bytes: if gpus == 0 { 0 } else { vram_bytes },
            architecture: match self.architecture.as_deref() {
                Some("x86_64") => Some(Architecture::X86_64),
                Some("arm64") => Some(Architecture::Arm64),
                _ => None,
            },
            devices: self.device_access.clone(),
            labels: self.node_labels.clone().unwrap_or_default(),
            // The parser has checked the name; an empty name means any node.
            node: NodeId::new(&self.node_affinity).ok(),
            place: Place::Process,
            python: false,
            nodejs: false,
        }
    }
}

fn saturated(amount: u64) -> u32 {
    u32::try_from(amount).unwrap_or(u32::MAX)
}

/// Converts seconds to whole microseconds; negative values become zero, too large ones the maximum.
fn micros(seconds: f64) -> Micros {
    Micros((seconds * 1e6).round().max(0.0) as u64)
}
