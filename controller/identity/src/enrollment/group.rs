//! Nodes that join by the token of a group ([ADR 61](../../../../docs/adr/0061-join-tokens-of-groups.md)).
//!
//! Their enrollments have a label. The group's token takes neither the name of a node that joined in another way, nor that of
//! one which is connected, nor that of one which the cluster knows and which has no enrollment: an operator revoked it.
//! Members of groups come and go under new names, so each join removes some of the enrollments that nobody can use any more.

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_desk::{Caller, Consistency, Desk, Error, requests};
use atlas_objects::EnrollmentSpec;
use atlas_state::State;
use atlas_types::{Command, DeleteObject, Expect, NodeHealth, NodeId, Object, ObjectKind, Timestamp};

use super::{KIND, is_same, key, write_enrollment};

/// The label of enrollments that were made by the token of a group, and its value.
const LABEL: (&str, &str) = ("joined-by", "group-token");
/// The most old enrollments that one join removes.
const REMOVED_MAX: usize = 4;
/// The most enrollments of the group. Who has its token could otherwise fill the state, which has 50,000 objects of all kinds.
const MEMBERS_MAX: usize = 4_096;

/// What a node of a group shows. Its token was checked. Both hashes are hexadecimal digits.
#[derive(Debug, Clone, Copy)]
pub struct GroupMember<'a> {
    /// The node's name.
    pub node: &'a str,
    /// The hash of its token.
    pub token: &'a str,
    /// The hash of its key.
    pub key: &'a str,
    /// How long certificates are valid.
    pub life: Duration,
}

/// Recognises a node of a group by its key from now on. A repeat with the same key changes nothing.
pub async fn enroll_member(desk: &Desk, caller: &Caller, member: GroupMember<'_>) -> Result<(), Error> {
    let key = key(member.node)?;
    let state = desk.state(Consistency::Linearizable).await?;
    let id = NodeId::new(member.node)?;
    let expect = match state.object(&key) {
        // It was revoked, or is from the time before TLS. It has labels of an operator, by which it would get jobs.
        None if state.node(&id).is_some() => return Err(Error::NodeNameTaken(member.node.to_owned())),
        None => Expect::Absent,
        Some(object) => {
            let spec = EnrollmentSpec::read(&object.spec).map_err(|_| Error::NodeTokenRefused)?;
            if !is_of_group(object) {
                return Err(Error::NodeTokenRefused);
            }
            if spec.key_sha256.is_some_and(|stored| is_same(&stored, member.key)) {
                return Ok(());
            }
            if is_connected(&state, &id) {
                return Err(Error::NodeTokenRefused);
            }
            Expect::Revision(object.revision)
        }
    };
    let members = Members::of(&state, desk.now_ms(), member.life)?;
    if expect == Expect::Absent && members.count >= MEMBERS_MAX && members.unused.is_empty() {
        return Err(Error::GroupFull { max: MEMBERS_MAX });
    }
    let spec = EnrollmentSpec {
        key_sha256: Some(member.key.to_owned()),
        token_sha256: Some(member.token.to_owned()),
        token_expires_ms: None,
    };
    let labels = BTreeMap::from([(LABEL.0.to_owned(), LABEL.1.to_owned())]);
    write_enrollment(desk, caller, &key, &spec, labels, expect).await.map_err(|error| match error {
        // Another worker of this name was faster.
        Error::ObjectChanged { .. } => Error::NodeTokenRefused,
        other => other,
    })?;
    for command in members.unused {
        // A later join tries again.
        if let Err(error) = desk.propose(requests::of(caller, Command::DeleteObject(command))).await {
            tracing::debug!(error = &error as &dyn std::error::Error, "an old enrollment was not removed");
            break;
        }
    }
    Ok(())
}

fn is_of_group(object: &Object) -> bool {
    object.labels.get(LABEL.0).is_some_and(|value| value == LABEL.1)
}

fn is_connected(state: &State, node: &NodeId) -> bool {
    state.node(node).is_some_and(|node| node.node.health == NodeHealth::Ready)
}

/// The enrollments of the group.
struct Members {
    count: usize,
    /// The oldest of nodes that the cluster has forgotten, and that joined longer ago than a certificate is valid: commands that
    /// remove them. One that is still there, because its certificate was renewed, joins again.
    unused: Vec<DeleteObject>,
}

impl Members {
    /// Looks at all enrollments. They are few enough: objects have a limit.
    fn of(state: &State, now_ms: u64, life: Duration) -> Result<Self, Error> {
        let kind = ObjectKind::new(KIND)?;
        let is_over = |at: Timestamp| {
            let at = u64::try_from(at.0 / 1_000).unwrap_or(0);
            at.saturating_add(u64::try_from(life.as_millis()).unwrap_or(u64::MAX)) < now_ms
        };
        let mut members = Self { count: 0, unused: Vec::new() };
        for object in state.objects_of_kind(&kind).filter(|object| is_of_group(object)) {
            members.count += 1;
            let node = NodeId::new(object.key.name.as_str());
            let is_gone = || node.is_ok_and(|node| state.node(&node).is_none());
            if members.unused.len() < REMOVED_MAX && is_over(object.updated) && is_gone() {
                members.unused.push(DeleteObject {
                    kind: object.key.kind.clone(),
                    name: object.key.name.clone(),
                    expect: Expect::Revision(object.revision),
                });
            }
        }
        Ok(members)
    }
}
