//! Agents.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::{
    AgentKind, Command, Demand, Digest, Effects, Micros, Payload, RegisterAgent, RetryRule, RunSpec, Timeouts,
};

use crate::{VERSION, digest};

/// How an agent runs that asks for nothing: it is idempotent, starts within 30 seconds and runs for at most a minute.
pub fn spec() -> RunSpec {
    RunSpec {
        demand: Demand::default(),
        effects: Effects::Idempotent,
        max_attempts: 3,
        concurrency: None,
        rate: None,
        per_key: None,
        failures_max: None,
        retry: RetryRule::default(),
        timeouts: Timeouts { queue: None, startup: Micros::from_secs(30), execution: Micros::from_secs(60) },
        carried: false,
        durable: false,
        spawns: false,
        requires: Vec::new(),
        secrets: Vec::new(),
        model: None,
        other_models: Vec::new(),
        servers: Vec::new(),
    }
}

/// An agent that asks for nothing.
pub fn agent(name: &str) -> AgentBuilder {
    AgentBuilder(RegisterAgent {
        name: name.parse().expect("the name of an agent"),
        version: VERSION,
        digest: digest(1),
        package_bytes: 1,
        kind: AgentKind::Agent,
        capabilities: Vec::new(),
        contract: Payload::inline(b"{}"),
        spec: Arc::new(spec()),
        labels: BTreeMap::new(),
        immutable: false,
    })
}

/// A version of an agent that is about to be registered.
#[derive(Debug, Clone)]
pub struct AgentBuilder(RegisterAgent);

impl AgentBuilder {
    /// The package with this digest.
    #[must_use]
    pub fn with_package(mut self, digest: Digest) -> Self {
        self.0.digest = digest;
        self
    }

    #[must_use]
    pub fn with_effects(self, effects: Effects) -> Self {
        self.with_spec(RunSpec { effects, ..spec() })
    }

    #[must_use]
    pub fn with_spec(mut self, spec: RunSpec) -> Self {
        self.0.spec = Arc::new(spec);
        self
    }

    pub fn registration(self) -> RegisterAgent {
        self.0
    }

    pub fn registered(self) -> Command {
        Command::RegisterAgent(self.0)
    }
}
