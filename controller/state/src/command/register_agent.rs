//! Publishes an agent version. Jobs keep the spec they were pinned to, so replacing a version touches none of them.

use std::sync::Arc;

use atlas_types::{AgentVersion, Outcome, RegisterAgent, Rejection};

use super::{check_limit, check_size};
use crate::change::Change;

pub(super) fn apply(command: &RegisterAgent, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let namespace = &change.origin.namespace;
    let state = &*change.state;
    let old = state.agent(namespace, &command.name, command.version);
    let size = command.contract.inline_bytes();
    check_size(size)?;
    if old.is_none() {
        check_limit("agent versions", state.agents_total(), state.config.agents_max)?;
    }
    let bytes = state.inline_bytes() + size;
    check_limit("payload bytes", bytes.saturating_sub(1), state.config.inline_bytes_max)?;
    if old.is_some_and(|old| is_same(old, command)) {
        return Ok(Outcome::Done);
    }

    let agent = Arc::new(AgentVersion {
        namespace: namespace.clone(),
        name: command.name.clone(),
        version: command.version,
        digest: command.digest,
        package_bytes: command.package_bytes,
        kind: command.kind,
        capabilities: command.capabilities.clone(),
        contract: command.contract.clone(),
        spec: Arc::clone(&command.spec),
        labels: command.labels.clone(),
        registered_at: change.at,
        registered_seq: state.seq,
        retired: false,
    });
    change.put_agent(agent);
    Ok(Outcome::Done)
}

/// Whether nothing would change.
fn is_same(old: &AgentVersion, new: &RegisterAgent) -> bool {
    !old.retired
        && old.digest == new.digest
        && old.package_bytes == new.package_bytes
        && old.kind == new.kind
        && old.capabilities == new.capabilities
        && old.contract == new.contract
        && old.spec == new.spec
        && old.labels == new.labels
}
