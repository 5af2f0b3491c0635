//! The packages that an agent version had before others replaced them, and the way back to one.

use atlas_registry::unknown_agent;
use atlas_types::{AgentRevision, AgentVersion, Digest, Principal, Timestamp};
use serde_json::{Value, json};

use crate::agents::{Registered, exactly};
use crate::{Caller, Error, Service};

/// Result of a rollback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolledBack {
    /// The version with its package of now.
    pub registered: Registered,
    /// The revision that it went back to.
    pub from: u32,
    /// The number that its package has now.
    pub revision: u32,
}

impl Service {
    /// Registers an earlier package of a version again: that of a revision, or the one before the package of now. Policies judge it
    /// like every registration. Jobs keep the packages that they are pinned to.
    pub async fn roll_back(
        &self,
        caller: &Caller,
        name: &str,
        version: &str,
        to: Option<u32>,
    ) -> Result<RolledBack, Error> {
        let (agent, number) = exactly(name, version)?;
        let state = self.shared.read().await?;
        let known = state.agent(&caller.namespace, &agent, number);
        let known = known.ok_or_else(|| unknown_agent(&state, caller, name, Some(version)))?;
        let found = earlier(known, to)?;
        let package = self.artifact(found.digest).await?;
        let registered = self.register(caller, package, true).await?;
        let state = self.shared.read().await?;
        let revision = state.agent(&caller.namespace, &agent, number).map_or(found.number, |agent| agent.revision);
        tracing::info!(agent = %agent, version = %number, from = found.number, revision, "agent rolled back");
        Ok(RolledBack { registered, from: found.number, revision })
    }
}

/// The revision that a rollback goes to.
fn earlier(agent: &AgentVersion, to: Option<u32>) -> Result<&AgentRevision, Error> {
    let refused =
        |why: String| Error::UnknownRevision(format!("the version {} of \"{}\" {why}", agent.version, agent.name));
    let Some(to) = to else {
        return agent.revisions.last().ok_or_else(|| refused("has no earlier revision".to_owned()));
    };
    if to == agent.revision {
        return Err(refused(format!("is at revision {to} already")));
    }
    agent.revisions.iter().find(|revision| revision.number == to).ok_or_else(|| {
        let numbers: Vec<String> = agent.revisions.iter().map(|revision| revision.number.to_string()).collect();
        match numbers.is_empty() {
            true => refused(format!("has no revision {to}, only {}", agent.revision)),
            false => refused(format!("has no revision {to}: it has {} and {}", numbers.join(", "), agent.revision)),
        }
    })
}

/// The revision whose package came back with another one: the latest before it that has the same.
fn copied(agent: &AgentVersion, number: u32, digest: Digest) -> Option<u32> {
    let before = agent.revisions.iter().rev().filter(|revision| revision.number < number);
    before.filter(|revision| revision.digest == digest).map(|revision| revision.number).next()
}

/// The packages of a version, that of now first.
pub(crate) fn shown(agent: &AgentVersion) -> Value {
    let one = |number: u32, digest: Digest, bytes: u64, at: Timestamp, by: Option<&Principal>| {
        json!({
            "revision": number,
            "digest": digest.to_string(),
            "package_bytes": bytes,
            "registered_at": at.as_unix_seconds(),
            "registered_by": by.map(ToString::to_string),
            "copy_of": copied(agent, number, digest),
        })
    };
    let now = one(agent.revision, agent.digest, agent.package_bytes, agent.registered_at, agent.registered_by.as_ref());
    let earlier = agent
        .revisions
        .iter()
        .rev()
        .map(|old| one(old.number, old.digest, old.package_bytes, old.registered_at, old.registered_by.as_ref()));
    Value::Array(std::iter::once(now).chain(earlier).collect())
}
