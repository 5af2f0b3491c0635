//! Versions of agents: which one is meant (`versions`), its contract (`contracts`, `dependencies`), and what policies let it do (`policy`,
//! `policies`).

mod contracts;
mod dependencies;
mod policies;
mod policy;
mod versions;

use std::sync::Arc;

use atlas_desk::{Desk, Error};
use atlas_types::{AgentVersion, Digest};

pub use contracts::{KnownContract, calls_models};
pub use dependencies::lacking;
pub use policy::{Operation, PolicyOperation, PolicyQuestion, RunAgain, called_from, refusal_of};
pub use versions::{find_version, unknown_agent};

use contracts::Contracts;
use policies::Policies;

/// What a controller knows of versions of agents and of policies.
pub struct Registry {
    desk: Arc<Desk>,
    contracts: Contracts,
    policies: Policies,
}

impl Registry {
    /// An empty registry: contracts and policies are read when they are first needed.
    pub fn new(desk: Arc<Desk>) -> Self {
        Self { desk, contracts: Contracts::default(), policies: Policies::default() }
    }

    /// Reads a contract, once per package.
    pub async fn contract(&self, agent: &AgentVersion) -> Result<Arc<KnownContract>, Error> {
        if let Some(known) = self.contracts.get(agent) {
            return Ok(known);
        }
        let bytes = self.desk.bytes(&agent.contract).await?;
        let (contracts, digest) = (self.contracts.clone(), agent.digest);
        let read = self.desk.env.spawn_blocking("read-contract", move || contracts.keep(digest, &bytes));
        read.join().await.map_err(|_| Error::Internal)
    }

    /// Keeps the contract of a package that was just registered.
    pub fn keep_contract(&self, digest: Digest, contract: &[u8]) {
        self.contracts.keep(digest, contract);
    }
}
