//! Enrollments: the nodes that may connect where TLS is on ([ADR 41](../../../docs/adr/0041-tls.md)).
//!
//! The object `enrollment/NODE` has the hash of a join token, then that of the key that the node showed with it. A
//! token is used up by the write that records the key, which expects the revision with the token: two workers cannot
//! use the same token. A repeat with the same key gets the same answer, so a worker that lost it can ask again.

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_desk::{Caller, Consistency, Desk, Error, requests};
use atlas_objects::EnrollmentSpec;
use atlas_state::State;
use atlas_types::{Command, Expect, Namespace, NodeId, Object, ObjectKey, ObjectKind, ObjectName, PutObject};
use subtle::ConstantTimeEq as _;

mod group;

pub use group::{GroupMember, enroll_member};

/// The kind of their objects.
const KIND: &str = "enrollment";
/// How often a write is tried again because another client changed the object.
const TRIES: usize = 8;

/// Records the hash of a new join token for a node, instead of an earlier one. The node's key stays valid until
/// the token is used. Returns when the token expires, in milliseconds since 1970.
pub async fn create_node_token(
    desk: &Desk,
    caller: &Caller,
    node: &str,
    hash: &str,
    valid_for: Duration,
) -> Result<u64, Error> {
    let valid_for = u64::try_from(valid_for.as_millis()).unwrap_or(u64::MAX);
    let expires = desk.now_ms().saturating_add(valid_for);
    let key = key(node)?;
    for _ in 0..TRIES {
        let state = desk.state(Consistency::Linearizable).await?;
        let old = state.object(&key);
        let spec = EnrollmentSpec {
            key_sha256: old.and_then(|old| EnrollmentSpec::read(&old.spec).ok()?.key_sha256),
            token_sha256: Some(hash.to_owned()),
            token_expires_ms: Some(expires),
        };
        let expect = old.map_or(Expect::Absent, |old| Expect::Revision(old.revision));
        // Who has a token of its own has left its group.
        match write_enrollment(desk, caller, &key, &spec, BTreeMap::new(), expect).await {
            Err(Error::ObjectChanged { .. }) => {}
            done => return done.map(|()| expires),
        }
    }
    Err(Error::OutcomeUnknown)
}

/// Uses a join token up: from now on the node is recognised by this key. Both hashes are hexadecimal digits.
pub async fn enroll_node(desk: &Desk, caller: &Caller, node: &str, token: &str, public_key: &str) -> Result<(), Error> {
    let refused = || Error::NodeTokenRefused;
    let key = key(node)?;
    let state = desk.state(Consistency::Linearizable).await?;
    let object = state.object(&key).ok_or_else(refused)?;
    let spec = EnrollmentSpec::read(&object.spec).map_err(|_| refused())?;
    let is_token = spec.token_sha256.as_deref().is_some_and(|stored| is_same(stored, token));
    let is_key = spec.key_sha256.as_deref().is_some_and(|stored| is_same(stored, public_key));
    match spec.token_expires_ms {
        // The answer to the first request was lost.
        None if is_token && is_key => return Ok(()),
        Some(expires) if is_token && desk.now_ms() < expires => {}
        _ => return Err(refused()),
    }
    let spec = EnrollmentSpec {
        key_sha256: Some(public_key.to_owned()),
        token_sha256: spec.token_sha256,
        token_expires_ms: None,
    };
    let labels = (*object.labels).clone();
    match write_enrollment(desk, caller, &key, &spec, labels, Expect::Revision(object.revision)).await {
        // Another worker was faster, or the token was replaced or revoked.
        Err(Error::ObjectChanged { .. } | Error::UnknownObject(_)) => Err(refused()),
        done => done,
    }
}

/// Whether a node may connect with this key, by the state as this controller has applied it.
pub fn is_enrolled(desk: &Desk, node: &str, public_key: &[u8; 32]) -> bool {
    let Ok(key) = key(node) else { return false };
    let state: State = desk.handle.applied();
    let spec = |object: &Object| EnrollmentSpec::read(&object.spec).ok()?.key_sha256;
    let stored = state.object(&key).and_then(|object| spec(object));
    stored.is_some_and(|stored| is_same(&stored, &hexadecimal(public_key)))
}

async fn write_enrollment(
    desk: &Desk,
    caller: &Caller,
    key: &ObjectKey,
    spec: &EnrollmentSpec,
    labels: BTreeMap<String, String>,
    expect: Expect,
) -> Result<(), Error> {
    let what = "write an enrollment";
    let spec = serde_json::to_value(spec).map_err(|error| Error::internal(what, &error))?;
    let spec = atlas_objects::canonical(&spec).map_err(|error| Error::internal(what, &error))?;
    let command = Command::PutObject(PutObject {
        kind: key.kind.clone(),
        name: key.name.clone(),
        labels,
        spec: spec.into(),
        spec_version: 1,
        expect,
    });
    let caller = caller.clone().with_request_id(None).in_namespace(key.namespace.as_str())?;
    desk.propose(requests::of(&caller, command)).await.map(|_| ())
}

fn key(node: &str) -> Result<ObjectKey, Error> {
    let node = NodeId::new(node)?;
    let name = ObjectName::new(node.as_str())?;
    Ok(ObjectKey { namespace: Namespace::default_namespace(), kind: ObjectKind::new(KIND)?, name })
}

fn is_same(stored: &str, shown: &str) -> bool {
    bool::from(stored.as_bytes().ct_eq(shown.as_bytes()))
}

fn hexadecimal(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
