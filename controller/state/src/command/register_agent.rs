//! Publishes an agent version. A version is immutable, unless the command says that its package may be replaced; the package that was
//! replaced is kept as a revision. Jobs keep the spec they were pinned to, so replacing a version touches none of them.

use std::sync::Arc;

use atlas_types::{AgentRevision, AgentVersion, Outcome, RegisterAgent, Rejection, level};

use super::{check_bytes, check_limit, check_namespace, check_size};
use crate::change::Change;
use crate::index::texts_bytes;

pub(super) fn apply(command: &RegisterAgent, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let namespace = &change.origin.namespace;
    let state = &*change.state;
    let old = state.agent(namespace, &command.name, command.version);
    if command.immutable && old.is_some_and(|old| old.digest != command.digest) {
        return Err(Rejection::VersionTaken);
    }
    let size = command.contract.inline_bytes();
    check_size(size)?;
    let is_known = old.is_some_and(|old| is_same(old, command));
    if is_known && state.level >= level::REPEATED_VERSIONS {
        return Ok(Outcome::Done);
    }
    if old.is_none() {
        check_limit("agent versions", state.agents_total(), state.config.agents_max)?;
        let limit = state.limits_of(namespace).and_then(|limits| limits.agents_max);
        check_namespace("agent versions", state.agents_of(namespace), limit)?;
    }
    check_bytes(state, size, texts_bytes(&command.labels, &command.capabilities, &command.spec))?;
    if is_known {
        return Ok(Outcome::Done);
    }

    // The mark is for a package: another one under the same version has to earn its own.
    let same = old.filter(|old| old.digest == command.digest);
    let deprecated = same.and_then(|old| old.deprecated.clone());
    let circuit = same.map(|old| old.circuit).unwrap_or_default();
    let keeps = state.level >= level::REVISIONS;
    let (revision, revisions) = old.filter(|_| keeps).map_or((1, Vec::new()), |old| revised(old, command));
    let registered_by = keeps.then(|| change.origin.principal.clone());
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
        retired_at: None,
        deprecated,
        circuit,
        revision,
        registered_by,
        revisions,
    });
    change.put_agent(agent);
    Ok(Outcome::Done)
}

/// The number of the package of a command, and the packages before it. A package that comes back is a revision of its own: numbers
/// never change what they stand for.
fn revised(old: &AgentVersion, new: &RegisterAgent) -> (u32, Vec<AgentRevision>) {
    let mut revisions = old.revisions.clone();
    if old.digest == new.digest {
        return (old.revision, revisions);
    }
    revisions.push(AgentRevision {
        number: old.revision,
        digest: old.digest,
        package_bytes: old.package_bytes,
        registered_at: old.registered_at,
        registered_by: old.registered_by.clone(),
    });
    revisions.drain(..revisions.len().saturating_sub(AgentVersion::REVISIONS_MAX));
    (old.revision.saturating_add(1), revisions)
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

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_version_is_published_and_replaced() {
        check(
            "agent a digest=1; agent a digest=1; agent a digest=2; agent a version=1.1.0",
            expect![[r#"
            agent a 1.0.0
            agent a 1.0.0
            agent a 1.1.0
        "#]],
        );
    }

    #[test]
    fn an_immutable_version_keeps_its_package() {
        check(
            "agent a digest=1 -- level 6; agent a digest=2 immutable=true; agent a digest=1 immutable=true; retire a;
            agent a digest=2 immutable=true; agent a digest=1 immutable=true; agent a version=1.1.0 immutable=true; revisions a",
            expect![[r#"
                ! the agent version is registered with another package
                agent a 1.0.0 retired
                ! the agent version is registered with another package
                agent a 1.0.0
                agent a 1.1.0
                a 1.0.0: now 1=01 by local
                a 1.1.0: now 1=01 by local
            "#]],
        );
    }

    #[test]
    fn packages_that_were_replaced_are_kept_as_revisions() {
        check(
            "level 5; agent a digest=1 -- agent a digest=2; revisions a; level 6; agent a digest=3; revisions a;
            agent a digest=2; revisions a; retire a; agent a digest=2; revisions a",
            expect![[r#"
                agent a 1.0.0
                a 1.0.0: now 1=02
                agent a 1.0.0
                a 1.0.0: 1=02 now 2=03 by local
                agent a 1.0.0
                a 1.0.0: 1=02 2=03 now 3=02 by local
                agent a 1.0.0 retired
                agent a 1.0.0
                a 1.0.0: 1=02 2=03 now 3=02 by local
            "#]],
        );
    }

    #[test]
    fn the_oldest_revisions_are_forgotten() {
        check(
            "level 6; agent a digest=1; agent a digest=2; agent a digest=3; agent a digest=4; agent a digest=5; agent a digest=6;
            agent a digest=7; agent a digest=8; agent a digest=9; agent a digest=10; agent a digest=11; agent a digest=12 --
            revisions a",
            expect![[r#"
                a 1.0.0: 2=02 3=03 4=04 5=05 6=06 7=07 8=08 9=09 10=0a 11=0b now 12=0c by local
            "#]],
        );
    }

    #[test]
    fn a_retired_version_comes_back_when_it_is_published_again() {
        check(
            "agent a; retire a -- agent a; job j1",
            expect![[r#"
            agent a 1.0.0
            j1 Submitted pending→pending Queued
        "#]],
        );
    }

    #[test]
    fn a_running_job_keeps_what_it_was_pinned_to() {
        check(
            "agent a retries=0; node n1; job j1; agent a digest=2 retries=5 -- grant j1 n1; fail j1",
            expect![[r#"
            j1 Granted pending→running on n1 token 1 attempt 1
            j1 Ended running→failed Agent: boom
        "#]],
        );
    }

    #[test]
    fn limits_refuse_more() {
        check(
            "config agents=1 bytes=10 -- agent a contract=11; agent a contract=70000; agent a; agent b; agent a digest=2",
            expect![[r#"
                ! the cluster's limit of 10 for payload bytes is reached
                ! a payload of 70000 bytes is too large to be inline
                agent a 1.0.0
                ! the cluster's limit of 1 for agent versions is reached
                agent a 1.0.0
            "#]],
        );
    }

    #[test]
    fn a_version_that_is_there_is_accepted_beyond_a_limit() {
        check(
            "config bytes=15; agent a contract=10 -- agent a contract=10; level 5; agent a contract=10",
            expect![[r#"
                ! the cluster's limit of 15 for payload bytes is reached
            "#]],
        );
    }
}
