//! Who a caller is, and what it may do ([ADR 38](../../../docs/adr/0038-tokens-and-roles.md)).
//!
//! A token is `atl_NAME_SECRET`. The object `token/NAME` has the hash of the secret and names the principal, and the object
//! `binding/PRINCIPAL` has what the principal is granted. Both are read from the state as this controller has applied it: a request
//! needs no other member, and a revoked token is refused as soon as the revocation has arrived here. Other tokens are those of issuers
//! (`sign_in.rs`).

use std::sync::Arc;
use std::time::Duration;

use atlas_access::{Access, Place, ROOT, Right, Rights, SECRET_DIGITS, built_in, is_name, parts, token};
use atlas_objects::{BindingSpec, GrantSpec, RoleSpec, TokenSpec};
use atlas_state::State;
use atlas_types::{
    Command, Door, Expect, Job, Namespace, ObjectKey, ObjectKind, ObjectName, Principal, PutObject, SecretText,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::objects::{ShownObject, with_revision};
use crate::probes::is_named_so;
use crate::sign_in::grants_of_issuer;
use crate::{Caller, Consistency, Error, Service};

/// How callers of this controller prove who they are.
pub struct Authentication {
    root: Option<[u8; 32]>,
}

/// Why a token of the file of the root token is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the root token is atl_{ROOT}_ and {SECRET_DIGITS} hexadecimal digits")]
pub struct NotARootToken;

impl Authentication {
    /// Tokens are checked. Who shows the root token is the principal `root`, and may do everything; none if there is no such token.
    pub fn new(root: Option<&str>) -> Result<Self, NotARootToken> {
        let hash = |token: &str| {
            let (name, secret) = parts(token.trim()).ok_or(NotARootToken)?;
            if name == ROOT { Ok(hash(secret)) } else { Err(NotARootToken) }
        };
        Ok(Self { root: root.map(hash).transpose()? })
    }

    /// Who shows a token, and what it is granted in a state; none if the token is not one of this cluster's.
    pub fn identify(&self, state: &State, token: &str, now_ms: u64) -> Result<Option<Access>, Error> {
        let Some((name, secret)) = parts(token) else { return Ok(None) };
        let unknown = || Error::Unauthenticated("the token is not valid here");
        let shown = hash(secret);
        if name == ROOT {
            let is_root = self.root.is_some_and(|root| bool::from(root.ct_eq(&shown)));
            let all = || Access::new(root(), vec![(Place::Cluster, Rights::ALL)]);
            return if is_root { Ok(Some(all())) } else { Err(unknown()) };
        }
        let spec =
            key("token", name).and_then(|key| TokenSpec::read(&state.object(&key)?.spec).ok()).ok_or_else(unknown)?;
        let is_same = bytes(&spec.sha256).is_some_and(|stored| bool::from(stored.ct_eq(&shown)));
        if !is_same {
            return Err(unknown());
        }
        if spec.expires_ms.is_some_and(|expires| now_ms >= expires) {
            return Err(Error::Unauthenticated("the token has expired"));
        }
        let principal = Principal::new(&spec.principal).map_err(|_| unknown())?;
        Ok(Some(access(state, principal)))
    }
}

/// A token as a client asks for it.
#[derive(Debug, Clone)]
pub struct NewToken {
    pub name: String,
    /// Who will show it.
    pub principal: String,
    pub description: Option<String>,
    /// How long it is valid; none for ever.
    pub valid_for: Option<Duration>,
}

/// A new token. Its text is nowhere else.
pub struct CreatedToken {
    pub text: SecretText,
    pub object: ShownObject,
}

impl Service {
    /// Who sends a request with this value of `Authorization`. While authentication is off, everybody is the principal `local` and may
    /// do everything.
    pub async fn authenticate(&self, authorization: Option<&str>) -> Result<Option<Arc<Access>>, Error> {
        let Some(authentication) = &self.shared.authentication else { return Ok(None) };
        let value = authorization.ok_or(Error::Unauthenticated("the request has no token"))?;
        let token = value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let (_, token) = token.ok_or(Error::Unauthenticated("the header Authorization is not \"Bearer TOKEN\""))?;
        let own = authentication.identify(&self.handle().applied(), token.trim(), self.now_ms())?;
        match own {
            Some(access) => Ok(Some(Arc::new(access))),
            None => self.sign_in(token.trim()).await.map(Some),
        }
    }

    /// A running job as a caller: it may do what the principal that submitted it is granted now. Jobs that the cluster itself made, such as
    /// those of orchestrators, may do everything, except those that only ask servers and models.
    pub(crate) fn caller_of_job(&self, state: &State, job: &Job) -> Caller {
        let caller = Caller::job(job);
        if self.shared.authentication.is_none() || acts_as_cluster(job) {
            return caller;
        }
        let access = match job.principal.as_str() {
            ROOT => Access::new(root(), vec![(Place::Cluster, Rights::ALL)]),
            _ => access(state, job.principal.clone()),
        };
        Caller { access: Some(Arc::new(access)), ..caller }
    }

    /// Whether a text is the root token of this controller.
    pub fn is_root_token(&self, text: &str) -> bool {
        let root = self.shared.authentication.as_ref().and_then(|authentication| authentication.root);
        let (Some(root), Some((ROOT, secret))) = (root, parts(text.trim())) else { return false };
        bool::from(root.ct_eq(&hash(secret)))
    }

    /// Who a caller is and what it is granted.
    pub fn whoami(&self, caller: &Caller) -> Value {
        let grants = match &caller.access {
            None => vec![shown_grant(&Place::Cluster, Rights::ALL)],
            Some(access) => access.grants().iter().map(|(place, rights)| shown_grant(place, *rights)).collect(),
        };
        json!({"principal": caller.principal.as_str(), "authenticated": caller.access.is_some(), "grants": grants})
    }

    /// Makes a token. Its text is in the answer alone.
    pub async fn create_token(&self, caller: &Caller, new: &NewToken) -> Result<CreatedToken, Error> {
        if new.name == ROOT || !is_name(&new.name) {
            let text = format!("the name of a token has up to 63 letters, digits and hyphens, and is not \"{ROOT}\"");
            return Err(Error::Malformed(text));
        }
        let key = ObjectKey {
            namespace: Namespace::default_namespace(),
            kind: ObjectKind::new("token")?,
            name: ObjectName::new(&new.name)?,
        };
        let principal = Principal::new(&new.principal)?;
        let text = token(&new.name, std::array::from_fn(|_| self.shared.env.entropy.u64()));
        let secret = parts(&text).map(|(_, secret)| hash(secret)).ok_or(Error::Internal)?;
        let spec = TokenSpec {
            principal: principal.to_string(),
            description: new.description.clone(),
            expires_ms: new.valid_for.map(|valid| {
                let valid = u64::try_from(valid.as_millis()).unwrap_or(u64::MAX);
                self.now_ms().saturating_add(valid)
            }),
            sha256: secret.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        let spec = serde_json::to_value(&spec).map_err(|error| Error::internal("write a token", &error))?;
        let spec = atlas_objects::canonical(&spec).map_err(|error| Error::internal("write a token", &error))?;
        let command = Command::PutObject(PutObject {
            kind: key.kind.clone(),
            name: key.name.clone(),
            labels: Default::default(),
            spec: spec.into(),
            spec_version: 1,
            expect: Expect::Absent,
        });
        // Objects of this kind are in the namespace `default`, whatever the namespace of the request.
        let caller = caller.clone().with_request_id(None).in_namespace(key.namespace.as_str())?;
        self.propose(caller.request(command)).await?;
        let state = self.state(Consistency::Linearizable).await?;
        let object = state.object(&key).map(with_revision);
        let object = object.ok_or_else(|| Error::UnknownObject("the token was deleted".to_owned()))?;
        Ok(CreatedToken { text: SecretText::new(text), object })
    }

    /// The real time in milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.shared.env.clock.wall().0 / 1_000).unwrap_or(0)
    }
}

/// Whether a job has the rights of the cluster.
pub(crate) fn acts_as_cluster(job: &Job) -> bool {
    job.door == Door::Duty && job.principal == Principal::cluster() && !is_named_so(&job.agent)
}

/// What a principal is granted. Roles and namespaces that are not there grant nothing.
pub(crate) fn access(state: &State, principal: Principal) -> Access {
    let binding = key("binding", principal.as_str()).and_then(|key| BindingSpec::read(&state.object(&key)?.spec).ok());
    let rights = |role: &str| {
        let stored = || Some(RoleSpec::read(&state.object(&key("role", role)?)?.spec).ok()?.rights());
        built_in(role).or_else(stored).unwrap_or_default()
    };
    let grant = |GrantSpec { namespace, role }: GrantSpec| {
        let place = match namespace {
            None => Place::Cluster,
            Some(name) => Place::In(Namespace::new(&name).ok()?),
        };
        Some((place, rights(&role)))
    };
    let own = binding.map(|binding| binding.grants).unwrap_or_default();
    let grants = own.into_iter().chain(grants_of_issuer(state, &principal));
    let grants = grants.filter_map(grant).collect();
    Access::new(principal, grants)
}

/// Whether a principal has a role in a namespace. `root` has every role.
pub(crate) fn is_granted(state: &State, principal: &Principal, namespace: &Namespace, role: &str) -> bool {
    let binding = key("binding", principal.as_str()).and_then(|key| BindingSpec::read(&state.object(&key)?.spec).ok());
    let own = binding.map(|binding| binding.grants).unwrap_or_default();
    if principal.as_str() == ROOT {
        return true;
    }
    let holds = |grant: GrantSpec| grant.role == role && grant.namespace.is_none_or(|name| name == namespace.as_str());
    own.into_iter().chain(grants_of_issuer(state, principal)).any(holds)
}

fn shown_grant(place: &Place, rights: Rights) -> Value {
    let rights: Vec<&str> = rights.iter().map(Right::as_str).collect();
    match place {
        Place::Cluster => json!({"rights": rights}),
        Place::In(namespace) => json!({"namespace": namespace.as_str(), "rights": rights}),
    }
}

fn root() -> Principal {
    // A constant that is a name.
    Principal::new(ROOT).unwrap_or_else(|_| Principal::cluster())
}

/// The key of an object whose kind belongs to the cluster; none if the name is that of no object.
pub(crate) fn key(kind: &str, name: &str) -> Option<ObjectKey> {
    let (kind, name) = (ObjectKind::new(kind).ok()?, ObjectName::new(name).ok()?);
    Some(ObjectKey { namespace: Namespace::default_namespace(), kind, name })
}

fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// The bytes of 64 hexadecimal digits.
fn bytes(digits: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if digits.len() != SECRET_DIGITS {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_token_is_checked_when_it_is_read() {
        assert!(Authentication::new(None).is_ok());
        assert!(Authentication::new(Some(&format!("{}\n", token(ROOT, [1, 2, 3, 4])))).is_ok());
        for wrong in ["", "secret", &token("ci", [0; 4])] {
            assert_eq!(Authentication::new(Some(wrong)).err(), Some(NotARootToken), "{wrong:?}");
        }
    }

    #[test]
    fn hashes_are_read_as_they_are_written() {
        let hash = hash("x");
        let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(bytes(&digits), Some(hash));
        assert_eq!(bytes("é".repeat(32).as_str()), None);
    }
}
