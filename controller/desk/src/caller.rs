//! The caller of a service function: the principal, the door, the job on whose behalf it calls, and the namespace.
//!
//! Each door creates callers in one place and passes them on. Only this crate can build one from parts, so that a door cannot use a principal
//! that it did not check; who acts for others is in `on_behalf`.

use std::fmt;
use std::sync::Arc;

use atlas_access::{Access, Place, Right};
use atlas_types::{Door, Namespace, Principal, RequestId, SecretText, TraceContext};

use crate::Error;

/// A credential of a caller for somebody else. It has no readable form.
#[derive(Clone)]
pub(crate) struct Inbound(pub(crate) SecretText);

impl fmt::Debug for Inbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inbound")
    }
}

/// The caller and its door.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Caller {
    /// The namespace of the call.
    pub namespace: Namespace,
    /// The caller's identity.
    pub principal: Principal,
    /// The job on whose behalf the call is made: a job that an agent spawns gets the principal of the agent's own job.
    pub on_behalf_of: Option<atlas_types::JobId>,
    pub door: Door,
    /// The caller's trace.
    pub trace: Option<TraceContext>,
    /// The caller's idempotency key. A repeat gets the first answer again.
    pub request_id: Option<RequestId>,
    /// What the principal is granted; none while authentication is off, and for the cluster and its own jobs.
    pub(crate) access: Option<Arc<Access>>,
    /// A credential that its jobs pass on.
    pub(crate) inbound: Option<Inbound>,
}

impl Caller {
    /// The caller at a door without authentication.
    pub fn anonymous(door: Door) -> Self {
        Self::new(Namespace::default_namespace(), Principal::local(), door)
    }

    /// The caller that authentication found.
    pub fn authenticated(door: Door, access: Option<Arc<Access>>) -> Self {
        match access {
            None => Self::anonymous(door),
            Some(access) => {
                let caller = Self::new(Namespace::default_namespace(), access.principal.clone(), door);
                Self { access: Some(access), ..caller }
            }
        }
    }

    /// Whether it showed a token. False while authentication is off.
    pub fn is_authenticated(&self) -> bool {
        self.access.is_some()
    }

    /// What is known of it under a name besides its principal, such as its team; nothing while authentication is off.
    pub fn attribute(&self, name: &str) -> &[String] {
        let values = self.access.as_deref().and_then(|access| access.attributes().get(name));
        values.map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether it is the cluster itself, and no job of it.
    pub fn is_cluster(&self) -> bool {
        self.access.is_none() && self.on_behalf_of.is_none() && self.principal == Principal::cluster()
    }

    /// Refuses a caller that lacks a right in its namespace.
    pub(crate) fn needs(&self, right: Right) -> Result<(), Error> {
        self.needs_at(right, Place::In(self.namespace.clone()))
    }

    /// Refuses a caller that lacks a right in the cluster: a grant in one namespace does not count.
    pub(crate) fn needs_in_cluster(&self, right: Right) -> Result<(), Error> {
        self.needs_at(right, Place::Cluster)
    }

    fn needs_at(&self, right: Right, place: Place) -> Result<(), Error> {
        match &self.access {
            Some(access) if !access.may(right, &place) => {
                Err(Error::Forbidden { principal: self.principal.clone(), right, place })
            }
            _ => Ok(()),
        }
    }

    /// A member of the cluster, or a controller with a join token.
    pub fn cluster(door: Door) -> Self {
        Self::new(Namespace::default_namespace(), Principal::cluster(), door)
    }

    pub(crate) fn new(namespace: Namespace, principal: Principal, door: Door) -> Self {
        Self {
            namespace,
            principal,
            on_behalf_of: None,
            door,
            trace: None,
            request_id: None,
            access: None,
            inbound: None,
        }
    }

    /// The same caller with a trace.
    #[must_use]
    pub fn with_trace(self, trace: Option<TraceContext>) -> Self {
        Self { trace, ..self }
    }

    /// The same caller with another idempotency key, or none.
    #[must_use]
    pub fn with_request_id(self, request_id: Option<RequestId>) -> Self {
        Self { request_id, ..self }
    }

    /// The same caller with a credential that its jobs pass on, as the `Authorization` header has it.
    #[must_use]
    pub fn with_inbound(self, credential: Option<SecretText>) -> Self {
        Self { inbound: credential.map(Inbound), ..self }
    }

    /// The same caller in another namespace, by its name.
    pub fn in_namespace(self, namespace: &str) -> Result<Self, Error> {
        Ok(Self { namespace: Namespace::new(namespace)?, ..self })
    }

    /// The same caller in another namespace.
    #[must_use]
    pub fn with_namespace(self, namespace: Namespace) -> Self {
        Self { namespace, ..self }
    }
}
