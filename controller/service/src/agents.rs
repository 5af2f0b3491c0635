//! Agents: list, look up, register from a package, retire.

use std::sync::Arc;

use atlas_package::UnpackError;
use atlas_types::{AgentKind, AgentName, AgentVersion, Command, Digest, RegisterAgent, RetireAgent, Version};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::contracts::Known;
use crate::submit::{find_version, unknown_agent};
use crate::{Caller, Consistency, Error, Service};

/// Which versions a list of agents shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Versions {
    /// All that take jobs.
    #[default]
    Registered,
    /// The highest of each name that takes jobs.
    Latest,
    /// All, retired ones included.
    All,
}

/// A registered version with its contract.
#[derive(Debug, Clone)]
pub struct ShownAgent {
    /// The version.
    pub agent: Arc<AgentVersion>,
    /// Its contract.
    pub contract: Arc<Known>,
}

/// What a registration did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// The agent's name.
    pub name: AgentName,
    /// Its version.
    pub version: Version,
    /// Its package.
    pub digest: Digest,
    /// False when this very package was registered already.
    pub changed: bool,
}

impl Service {
    /// The registered agents by name and version.
    pub async fn agents(
        &self,
        caller: &Caller,
        versions: Versions,
        consistency: Consistency,
    ) -> Result<Vec<ShownAgent>, Error> {
        let state = self.state(consistency).await?;
        let mut agents: Vec<Arc<AgentVersion>> = Vec::new();
        for agent in state.agents(&caller.namespace) {
            if agent.retired && versions != Versions::All {
                continue;
            }
            match agents.last_mut() {
                Some(last) if versions == Versions::Latest && last.name == agent.name => *last = agent.clone(),
                _ => agents.push(agent.clone()),
            }
        }
        let mut shown = Vec::with_capacity(agents.len());
        for agent in agents {
            let contract = self.known(&agent).await?;
            shown.push(ShownAgent { agent, contract });
        }
        Ok(shown)
    }

    /// The highest version of an agent that meets a requirement.
    pub async fn agent(
        &self,
        caller: &Caller,
        name: &str,
        requirement: Option<&str>,
        consistency: Consistency,
    ) -> Result<ShownAgent, Error> {
        let state = self.state(consistency).await?;
        let found = match AgentName::new(name) {
            Ok(name) => find_version(&state, caller, &name, requirement)?,
            Err(_) => None,
        };
        let agent = found.ok_or_else(|| unknown_agent(&state, caller, name, requirement))?;
        let contract = self.known(&agent).await?;
        Ok(ShownAgent { agent, contract })
    }

    /// Registers an agent from its package: checks it, stores it durably, then publishes the version.
    pub async fn register(&self, caller: &Caller, package: Bytes) -> Result<Registered, Error> {
        let limit = self.shared.limits.package_bytes_max;
        if package.len() as u64 > limit {
            return Err(Error::TooLarge { what: "the package", limit });
        }
        let bytes = package.clone();
        let read = self.shared.env.spawn_blocking("read-package", move || atlas_package::contract_of(&bytes));
        let contract = read.join().await.map_err(|_| Error::Internal)?.map_err(refused)?;
        let (name, version, package_bytes) = (contract.name.clone(), contract.version, package.len() as u64);
        self.shared.check_room().map_err(|error| Error::storing("the package", error))?;
        let stored = self.shared.artifacts.store(package).await;
        let digest = stored.map_err(|error| Error::storing("the package", error))?;
        let state = self.shared.current().await?;
        let known = state.agent(&caller.namespace, &name, version);
        if known.is_some_and(|known| known.digest == digest && !known.retired) {
            return Ok(Registered { name, version, digest, changed: false });
        }
        let json =
            serde_json::to_vec(&contract.to_json()).map_err(|error| Error::internal("write a contract", &error))?;
        self.shared.contracts.keep(digest, &json);
        let command = Command::RegisterAgent(RegisterAgent {
            name: name.clone(),
            version,
            digest,
            package_bytes,
            kind: contract.kind,
            capabilities: contract.capabilities.clone(),
            contract: self.payload(json.into()).await?,
            spec: Arc::new(contract.run_spec()),
            labels: contract.labels.clone().unwrap_or_default(),
        });
        self.propose(caller.request(command)).await?;
        tracing::info!(agent = %name, %version, ?digest, "agent registered");
        Ok(Registered { name, version, digest, changed: true })
    }

    /// Takes an agent version out of service; its jobs finish.
    pub async fn retire(&self, caller: &Caller, name: &str, version: &str) -> Result<(), Error> {
        let unknown = || Error::UnknownAgent {
            name: name.chars().take(255).collect(),
            version: Some(version.chars().take(64).collect()),
            suggestion: None,
        };
        let name = AgentName::new(name).map_err(|_| unknown())?;
        let version: Version = version.parse().map_err(|_| unknown())?;
        self.propose(caller.request(Command::RetireAgent(RetireAgent { name, version }))).await?;
        Ok(())
    }
}

fn refused(error: UnpackError) -> Error {
    match error {
        UnpackError::Contract(error) => {
            Error::ContractRefused { text: error.to_string(), violations: error.violations().to_vec() }
        }
        error => Error::PackageRefused(chain(&error)),
    }
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

impl ShownAgent {
    /// The object of lists; `name`, `version`, `description` and `capabilities` are the source system's.
    pub fn summary(&self) -> Map<String, Value> {
        let agent = &self.agent;
        let value = json!({
            "name": agent.name.as_str(),
            "version": agent.version.to_string(),
            "description": self.contract.text("/description"),
            "capabilities": agent.capabilities,
            "kind": match agent.kind { AgentKind::Agent => "agent", AgentKind::Orchestrator => "orchestrator" },
            "provider": self.contract.text("/provider/type"),
            "digest": agent.digest.to_string(),
            "package_bytes": agent.package_bytes,
            "registered_at": agent.registered_at.as_unix_seconds(),
            "retired": agent.retired,
            "labels": agent.labels,
        });
        match value {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }

    /// The object of one agent: the summary, its schemas and the whole contract.
    pub fn details(&self) -> Map<String, Value> {
        let mut members = self.summary();
        for name in ["input_schema", "output_schema"] {
            members.insert(name.to_owned(), self.contract.value.get(name).cloned().unwrap_or_default());
        }
        members.insert("contract".to_owned(), self.contract.value.clone());
        members
    }
}
