//! Agents: list, look up, register from a package, retire.

use std::sync::Arc;

use atlas_desk::requests;
use atlas_env::chain;
use atlas_package::UnpackError;
use atlas_registry::{KnownContract, find_version, unknown_agent};
use atlas_types::{
    AgentKind, AgentName, AgentVersion, Command, DeleteAgent, DeprecateAgent, Digest, Place, RegisterAgent,
    ResumeAgent, RetireAgent, Version, level,
};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::revisions;
use crate::{Caller, Consistency, Error, Service, View};

/// Maximum size of a deprecation message.
const DEPRECATION_BYTES_MAX: usize = 1_024;

/// The versions that a list of agents contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Versions {
    /// All versions that accept jobs.
    #[default]
    Registered,
    /// The highest version of each name that accepts jobs.
    Latest,
    /// All versions, including retired ones.
    All,
}

/// Selects agents.
#[derive(Debug, Clone, Default)]
pub struct AgentQuery {
    pub versions: Versions,
    pub name: Option<String>,
    /// Only agents with exactly this capability, compared as a whole and case-sensitively (compatibility §3.2).
    pub capability: Option<String>,
    /// Only agents with this text in name, description or a capability, ignoring case (compatibility §24.3).
    pub text: Option<String>,
    /// The most agents to return; none for all.
    pub limit: Option<usize>,
    /// How many agents to skip.
    pub offset: usize,
}

impl AgentQuery {
    /// True if a version passes the conditions that need only the state.
    fn admits(&self, agent: &AgentVersion) -> bool {
        (!agent.retired || self.versions == Versions::All)
            && self.name.as_ref().is_none_or(|name| agent.name.as_str() == name)
            && self.capability.as_ref().is_none_or(|capability| agent.capabilities.contains(capability))
    }
}

/// A registered version with its contract.
#[derive(Debug, Clone)]
pub struct ShownAgent {
    /// The version.
    pub agent: Arc<AgentVersion>,
    pub contract: Arc<KnownContract>,
}

/// Result of a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// The agent's name.
    pub name: AgentName,
    pub version: Version,
    /// Its package.
    pub digest: Digest,
    /// False if the same package was already registered.
    pub changed: bool,
}

/// What a registration has to obey.
#[derive(Debug, Clone, Copy)]
struct Rules {
    /// Whether policies judge it.
    policies: bool,
    /// Whether it may replace another package of the version.
    replace: bool,
}

impl Service {
    /// The registered agents that match a query, by name and version.
    pub async fn agents(
        &self,
        caller: &Caller,
        query: &AgentQuery,
        consistency: Consistency,
    ) -> Result<Vec<ShownAgent>, Error> {
        let state = self.state(consistency).await?;
        let mut agents: Vec<Arc<AgentVersion>> = Vec::new();
        for agent in state.agents(&caller.namespace).filter(|agent| query.admits(agent)) {
            match agents.last_mut() {
                Some(last) if query.versions == Versions::Latest && last.name == agent.name => *last = agent.clone(),
                _ => agents.push(agent.clone()),
            }
        }
        let (mut skip, limit) = (query.offset, query.limit.unwrap_or(usize::MAX));
        let text = query.text.as_ref().map(|text| text.to_lowercase());
        let mut shown = Vec::new();
        for agent in agents {
            if shown.len() >= limit {
                break;
            }
            let agent = ShownAgent { contract: self.shared.registry.contract(&agent).await?, agent };
            if text.as_ref().is_some_and(|text| !agent.mentions(text)) {
                continue;
            }
            match skip.checked_sub(1) {
                Some(left) => skip = left,
                None => shown.push(agent),
            }
        }
        Ok(shown)
    }

    /// One version, even if retired.
    pub async fn agent_version(
        &self,
        caller: &Caller,
        name: &str,
        version: &str,
        consistency: Consistency,
    ) -> Result<ShownAgent, Error> {
        let state = self.state(consistency).await?;
        let key = AgentName::new(name).ok().zip(version.parse::<Version>().ok());
        let found = key.and_then(|(name, version)| state.agent(&caller.namespace, &name, version).cloned());
        let agent = found.ok_or_else(|| unknown_agent(&state, caller, name, Some(version)))?;
        Ok(ShownAgent { contract: self.shared.registry.contract(&agent).await?, agent })
    }

    /// The highest version of an agent that meets a requirement.
    pub async fn agent(
        &self,
        caller: &Caller,
        name: &str,
        requirement: Option<&str>,
        consistency: Consistency,
    ) -> Result<ShownAgent, Error> {
        let mut state = self.state(consistency).await?;
        let found = match AgentName::new(name) {
            Ok(name) => {
                // A chain that cannot be made callable now is no reason to refuse a read.
                if let Ok(Some(newer)) = self.with_chain(caller, &state, &name, requirement).await {
                    state = newer;
                }
                find_version(&state, caller, &name, requirement)?
            }
            Err(_) => None,
        };
        let agent = found.ok_or_else(|| unknown_agent(&state, caller, name, requirement))?;
        let contract = self.shared.registry.contract(&agent).await?;
        Ok(ShownAgent { agent, contract })
    }

    /// Registers an agent from its package: checks it, stores it durably, then publishes the version. A version that is registered
    /// with another package is replaced only if the caller asks for that.
    pub async fn register(&self, caller: &Caller, package: Bytes, replace: bool) -> Result<Registered, Error> {
        self.register_under(caller, package, Rules { policies: true, replace }).await
    }

    /// Registers an agent that the cluster makes of something that is deployed already: a chain, or a skill.
    pub(crate) async fn register_made(&self, caller: &Caller, package: Bytes) -> Result<Registered, Error> {
        self.register_under(caller, package, Rules { policies: false, replace: true }).await
    }

    async fn register_under(&self, caller: &Caller, package: Bytes, rules: Rules) -> Result<Registered, Error> {
        let limit = self.shared.limits.package_bytes_max;
        if package.len() as u64 > limit {
            return Err(Error::TooLarge { what: "the package", limit });
        }
        let bytes = package.clone();
        let read = self.shared.env.spawn_blocking("read-package", move || atlas_package::contract_of(&bytes));
        let contract = read.join().await.map_err(|_| Error::Internal)?.map_err(refused)?;
        let (name, version, package_bytes) = (contract.name.clone(), contract.version, package.len() as u64);
        let normalised = contract.to_json();
        if rules.policies {
            let state = self.shared.current().await?;
            self.shared.registry.may_deploy(caller, &state, &normalised).await?;
        }
        if let Some(steps) = &contract.provider.steps {
            let document = serde_json::json!({ "steps": steps });
            let chain = atlas_runs::Chain::stored(name.as_str(), &document)
                .map_err(|error| Error::Malformed(format!("the steps of the chain are not valid: {error}")))?;
            let state = self.shared.read().await?;
            self.check_cycle(&state, &caller.namespace, name.as_str(), &chain).await?;
        }
        self.shared.check_room().map_err(|error| Error::storing("the package", error))?;
        let stored = self.shared.artifacts.store(package).await;
        let digest = stored.map_err(|error| Error::storing("the package", error))?;
        // A linearizable read is needed, because the answer states that the version is registered.
        let state = self.shared.read().await?;
        let known = state.agent(&caller.namespace, &name, version);
        if known.is_some_and(|known| known.digest == digest && !known.retired) {
            return Ok(Registered { name, version, digest, changed: false });
        }
        if let Some(known) = known.filter(|known| known.digest != digest && !rules.replace) {
            return Err(Error::VersionTaken(format!(
                "the version {version} of \"{name}\" is registered with the package {}, this package is {digest}",
                known.digest
            )));
        }
        let mut spec = contract.run_spec();
        if state.level() < level::REQUIRED_AGENTS {
            // Older members would not store this list. Until the level is active, workers get the list of missing
            // agents instead.
            spec.requires.clear();
        }
        if state.level() < level::ATTACHMENTS {
            // Older members would not store these. Until the level is active, jobs get no secrets of the cluster.
            spec.secrets.clear();
            spec.model = None;
            spec.other_models.clear();
        }
        if state.level() < level::CIRCUITS {
            spec.failures_max = None;
        }
        if state.level() < level::MCP_SERVERS {
            spec.servers.clear();
        }
        if state.level() < level::LLM_PLACES {
            // Older members count one kind of places.
            spec.demand.place = Place::Process;
        }
        spec.demand.python &= state.level() >= level::PYTHON;
        spec.demand.nodejs &= state.level() >= level::DURABLE;
        let json = serde_json::to_vec(&normalised).map_err(|error| Error::internal("write a contract", &error))?;
        self.shared.registry.keep_contract(digest, &json);
        let command = Command::RegisterAgent(RegisterAgent {
            name: name.clone(),
            version,
            digest,
            package_bytes,
            kind: contract.kind,
            capabilities: contract.capabilities.clone(),
            contract: self.payload(json.into()).await?,
            spec: Arc::new(spec),
            labels: contract.labels.clone().unwrap_or_default(),
            // Older members know no such refusal. Until the level is active, only the look above refuses.
            immutable: !rules.replace && state.level() >= level::REVISIONS,
        });
        self.propose(requests::of(caller, command)).await?;
        tracing::info!(agent = %name, %version, ?digest, "agent registered");
        Ok(Registered { name, version, digest, changed: true })
    }

    /// Retires an agent version. Its jobs finish.
    pub async fn retire(&self, caller: &Caller, name: &str, version: &str) -> Result<(), Error> {
        let (agent, number) = exactly(name, version)?;
        let command = Command::RetireAgent(RetireAgent { name: agent, version: number });
        self.change_version(caller, name, version, command).await
    }

    /// Deletes a retired agent version, if all jobs that refer to it have ended.
    pub async fn delete_agent(&self, caller: &Caller, name: &str, version: &str) -> Result<(), Error> {
        let (agent, number) = exactly(name, version)?;
        let command = Command::DeleteAgent(DeleteAgent { name: agent, version: number });
        self.change_version(caller, name, version, command).await
    }

    /// Marks an agent version as deprecated for new jobs with a message, or removes the mark.
    pub async fn deprecate(&self, caller: &Caller, name: &str, version: &str, why: Option<&str>) -> Result<(), Error> {
        let (agent, number) = exactly(name, version)?;
        if why.is_some_and(|why| why.len() > DEPRECATION_BYTES_MAX) {
            return Err(Error::TooLarge { what: "the message", limit: DEPRECATION_BYTES_MAX as u64 });
        }
        let command = DeprecateAgent { name: agent, version: number, why: why.map(Into::into) };
        self.change_version(caller, name, version, Command::DeprecateAgent(command)).await
    }

    /// Closes the circuit of an agent version.
    pub async fn resume_agent(&self, caller: &Caller, name: &str, version: &str) -> Result<(), Error> {
        let (agent, number) = exactly(name, version)?;
        let command = Command::ResumeAgent(ResumeAgent { name: agent, version: number });
        self.change_version(caller, name, version, command).await
    }

    /// Proposes a change of one agent version; the refusal of an absent one names it and the versions that the agent has.
    async fn change_version(&self, caller: &Caller, name: &str, version: &str, command: Command) -> Result<(), Error> {
        match self.propose(requests::of(caller, command)).await {
            Err(Error::AgentGone) => {
                let state = self.shared.read().await?;
                Err(unknown_agent(&state, caller, name, Some(version)))
            }
            answer => answer.map(drop),
        }
    }
}

/// Parses a name and a version. Text that is not a valid name or version counts as an unknown agent.
pub(crate) fn exactly(name: &str, version: &str) -> Result<(AgentName, Version), Error> {
    AgentName::new(name).ok().zip(version.parse().ok()).ok_or_else(|| Error::UnknownAgent {
        name: name.chars().take(255).collect(),
        version: Some(version.chars().take(64).collect()),
        versions: Vec::new(),
        suggestion: None,
    })
}

fn refused(error: UnpackError) -> Error {
    match error {
        UnpackError::Contract(error) => {
            Error::ContractRefused { text: error.to_string(), violations: error.violations().to_vec() }
        }
        error => Error::PackageRefused(chain(&error)),
    }
}

impl ShownAgent {
    /// True if the name, the description or a capability contains a lower-case text.
    fn mentions(&self, text: &str) -> bool {
        let words = [self.agent.name.as_str(), self.contract.text("/description")];
        let capabilities = self.agent.capabilities.iter().map(String::as_str);
        words.into_iter().chain(capabilities).any(|word| word.to_lowercase().contains(text))
    }

    /// The object in lists: the members of Atlas for Python, and in a full view also ours.
    pub fn summary(&self, view: View) -> Map<String, Value> {
        let agent = &self.agent;
        let plain = json!({
            "name": agent.name.as_str(),
            "version": agent.version.to_string(),
            "description": self.contract.text("/description"),
            "capabilities": agent.capabilities,
        });
        let ours = json!({
            "kind": match agent.kind { AgentKind::Agent => "agent", AgentKind::Orchestrator => "orchestrator" },
            "provider": self.contract.text("/provider/type"),
            "digest": agent.digest.to_string(),
            "package_bytes": agent.package_bytes,
            "registered_at": agent.registered_at.as_unix_seconds(),
            "registered_by": agent.registered_by.as_ref().map(ToString::to_string),
            "revision": agent.revision,
            "retired": agent.retired,
            "deprecated": agent.deprecated.as_deref(),
            "labels": agent.labels,
            "circuit": atlas_platform::shown_circuit(&agent.circuit),
        });
        let parts = if view == View::Full { vec![plain, ours] } else { vec![plain] };
        let members = parts.into_iter().filter_map(|part| match part {
            Value::Object(members) => Some(members),
            _ => None,
        });
        members.flatten().collect()
    }

    /// The object of one agent: the summary, its packages, its schemas and the whole contract.
    pub fn details(&self) -> Map<String, Value> {
        let mut members = self.summary(View::Full);
        for name in ["input_schema", "output_schema"] {
            members.insert(name.to_owned(), self.contract.value.get(name).cloned().unwrap_or_default());
        }
        members.insert("revisions".to_owned(), revisions::shown(&self.agent));
        members.insert("contract".to_owned(), self.contract.value.clone());
        members
    }
}
