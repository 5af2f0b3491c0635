//! Who a caller is, and what it may do ([ADR 38](../../../docs/adr/0038-tokens-and-roles.md)).
//!
//! A token is `atl_NAME_SECRET`. The object `token/NAME` has the hash of the secret and names the principal, and the object
//! `binding/PRINCIPAL` has what the principal is granted. Both are read from the state as this controller has applied it: a request
//! needs no other member, and a revoked token is refused as soon as the revocation has arrived here. Other tokens are those of issuers
//! (`sign_in.rs`).

use std::sync::Arc;
use std::time::Duration;

use atlas_access::{Access, Place, ROOT, Rights, is_name, parts, token};
use atlas_api::types::{Grant, Whoami};
use atlas_desk::{Caller, Consistency, Error, ShownObject, on_behalf, requests, with_revision};
use atlas_mcp_spec::CHECK_AGENT;
use atlas_model::{CALL_AGENT, CHAT_AGENT, DOCUMENTS_AGENT, PROBE_AGENT};
use atlas_objects::TokenSpec;
use atlas_pages::COLLECT_AGENT;
use atlas_state::State;
use atlas_types::{
    AgentName, Command, Door, Expect, Job, Namespace, ObjectKey, ObjectKind, ObjectName, Principal, PutObject,
    SecretText,
};
use subtle::ConstantTimeEq as _;

use crate::Authenticator;
use crate::authentication::{hash, root};
use crate::grants::access;

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

impl Authenticator {
    /// Who sends a request with this value of `Authorization`. While authentication is off, everybody is the principal `local` and may
    /// do everything.
    pub async fn authenticate(&self, authorization: Option<&str>) -> Result<Option<Arc<Access>>, Error> {
        let Some(authentication) = &self.authentication else { return Ok(None) };
        let value = authorization.ok_or(Error::Unauthenticated("the request has no token"))?;
        let token = value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let (_, token) = token.ok_or(Error::Unauthenticated("the header Authorization is not \"Bearer TOKEN\""))?;
        let own = authentication.identify(&self.desk.handle.applied(), token.trim(), self.desk.now_ms())?;
        match own {
            Some(access) => Ok(Some(Arc::new(access))),
            None => self.sign_in(token.trim()).await.map(Some),
        }
    }

    /// A running job as a caller: it may do what the principal that submitted it is granted now. Jobs that the cluster itself made, such as
    /// those of orchestrators, may do everything, except those that only ask servers and models.
    pub fn caller_of_job(&self, state: &State, job: &Job) -> Caller {
        let caller = on_behalf::job(job);
        if self.authentication.is_none() || acts_as_cluster(job) {
            return caller;
        }
        let access = match job.principal.as_str() {
            ROOT => Access::new(root(), vec![(Place::Cluster, Rights::ALL)]),
            _ => access(state, job.principal.clone()),
        };
        on_behalf::job_with(job, access)
    }

    /// Whether a text is the root token of this controller.
    pub fn is_root_token(&self, text: &str) -> bool {
        let root = self.authentication.as_ref().and_then(|authentication| authentication.root);
        let (Some(root), Some((ROOT, secret))) = (root, parts(text.trim())) else { return false };
        bool::from(root.ct_eq(&hash(secret)))
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
        let text = token(&new.name, std::array::from_fn(|_| self.desk.env.entropy.u64()));
        let secret = parts(&text).map(|(_, secret)| hash(secret)).ok_or(Error::Internal)?;
        let spec = TokenSpec {
            principal: principal.to_string(),
            description: new.description.clone(),
            expires_ms: new.valid_for.map(|valid| {
                let valid = u64::try_from(valid.as_millis()).unwrap_or(u64::MAX);
                self.desk.now_ms().saturating_add(valid)
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
        self.desk.propose(requests::of(&caller, command)).await?;
        let state = self.desk.state(Consistency::Linearizable).await?;
        let object = state.object(&key).map(with_revision);
        let object = object.ok_or_else(|| Error::UnknownObject("the token was deleted".to_owned()))?;
        Ok(CreatedToken { text: SecretText::new(text), object })
    }
}

/// Who a caller is and what it is granted.
pub fn whoami(caller: &Caller) -> Whoami {
    let grants = match on_behalf::grants(caller) {
        None => vec![shown_grant(&Place::Cluster, Rights::ALL)],
        Some(grants) => grants.iter().map(|(place, rights)| shown_grant(place, *rights)).collect(),
    };
    Whoami {
        principal: caller.principal.to_string(),
        authenticated: caller.is_authenticated(),
        grants,
        attributes: on_behalf::attributes(caller).cloned().unwrap_or_default(),
    }
}

/// Whether an agent has the name of one of the cluster's own that only asks servers and calls models. Its jobs need no rights of the cluster.
pub fn is_named_so(agent: &AgentName) -> bool {
    [CHECK_AGENT, PROBE_AGENT, DOCUMENTS_AGENT, COLLECT_AGENT, CALL_AGENT, CHAT_AGENT].contains(&agent.as_str())
}

/// Whether a job has the rights of the cluster.
pub fn acts_as_cluster(job: &Job) -> bool {
    job.door == Door::Duty && job.principal == Principal::cluster() && !is_named_so(&job.agent)
}

fn shown_grant(place: &Place, rights: Rights) -> Grant {
    let namespace = match place {
        Place::Cluster => None,
        Place::In(namespace) => Some(namespace.as_str().to_owned()),
    };
    Grant { namespace, rights: rights.iter().map(|right| right.as_str().to_owned()).collect() }
}
