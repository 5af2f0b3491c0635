//! Who calls a service function: the principal, the door, on whose behalf, and the namespace.
//!
//! A caller is made in one place of each door and handed down; no function makes one up. Only this crate can build one from parts, so
//! that a door cannot name a principal that it did not check.

use atlas_types::{Command, Door, Job, Namespace, Origin, Principal, Request, RequestId, TraceContext};

use crate::service::hash;

/// Who calls, through which door.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Caller {
    /// The namespace that the call acts in.
    pub namespace: Namespace,
    /// Who asks.
    pub principal: Principal,
    /// The job that asks for its principal: what an agent spawns is submitted with the name of whoever submitted the agent's job.
    pub on_behalf_of: Option<atlas_types::JobId>,
    pub door: Door,
    /// The caller's trace.
    pub trace: Option<TraceContext>,
    /// The caller's name for the call: a repeat gets the first answer again.
    pub request_id: Option<RequestId>,
}

impl Caller {
    /// The caller of a door that does not ask who it is: authentication is off.
    pub fn anonymous(door: Door) -> Self {
        Self::new(Namespace::default_namespace(), Principal::local(), door)
    }

    /// A member of the cluster, or somebody with a join token.
    pub fn cluster(door: Door) -> Self {
        Self::new(Namespace::default_namespace(), Principal::cluster(), door)
    }

    /// A running job, which asks with the name of whoever submitted it.
    pub(crate) fn job(job: &Job) -> Self {
        let caller = Self::new(job.namespace.clone(), job.principal.clone(), Door::Worker);
        Self { on_behalf_of: Some(job.id), trace: job.trace, ..caller }
    }

    fn new(namespace: Namespace, principal: Principal, door: Door) -> Self {
        Self { namespace, principal, on_behalf_of: None, door, trace: None, request_id: None }
    }

    /// The same caller with a trace.
    #[must_use]
    pub fn with_trace(self, trace: Option<TraceContext>) -> Self {
        Self { trace, ..self }
    }

    /// The same caller with another name for the call, or none.
    #[must_use]
    pub fn with_request_id(self, request_id: Option<RequestId>) -> Self {
        Self { request_id, ..self }
    }

    pub(crate) fn origin(&self) -> Origin {
        Origin {
            namespace: self.namespace.clone(),
            principal: self.principal.clone(),
            door: self.door,
            request_id: self.request_id.clone(),
            body_hash: 0,
            trace: self.trace,
        }
    }

    /// A request that says nothing but its command: a repeat has the same bytes.
    pub(crate) fn request(&self, command: Command) -> Request {
        let mut request = Request { origin: Origin::duty(self.namespace.clone()), command };
        let body_hash =
            self.request_id.as_ref().map_or(0, |_| hash(&atlas_format::encode_requests(&[request.clone()])));
        request.origin = Origin { body_hash, ..self.origin() };
        request
    }
}
