//! Callers that act for others: running jobs, and what the cluster does for whoever began it. Also what callers pass on to them.

use std::sync::Arc;

use atlas_access::{Access, Attributes, Place, Rights};
use atlas_types::{Door, Job, Namespace, Principal, SecretText};

use crate::Caller;

/// The cluster itself in a namespace.
pub fn cluster_in(namespace: Namespace) -> Caller {
    Caller { namespace, ..Caller::cluster(Door::Duty) }
}

/// A running job, which acts with the principal that submitted it, without its grants.
pub fn job(job: &Job) -> Caller {
    let caller = Caller::new(job.namespace.clone(), job.principal.clone(), Door::Worker);
    Caller { on_behalf_of: Some(job.id), trace: job.trace, ..caller }
}

/// The same with what its principal is granted.
pub fn job_with(running: &Job, access: Access) -> Caller {
    Caller { access: Some(Arc::new(access)), ..job(running) }
}

/// The same caller for another principal.
pub fn principal(caller: Caller, principal: Principal) -> Caller {
    Caller { principal, ..caller }
}

/// The credential that the jobs of a caller pass on.
pub fn credential(caller: &Caller) -> Option<&SecretText> {
    caller.inbound.as_ref().map(|inbound| &inbound.0)
}

/// What a caller is granted; none while authentication is off, and for the cluster and its own jobs, which may do everything.
pub fn grants(caller: &Caller) -> Option<&[(Place, Rights)]> {
    caller.access.as_deref().map(Access::grants)
}

/// What is known of a caller besides its principal; none while authentication is off, and for the cluster and its own jobs.
pub fn attributes(caller: &Caller) -> Option<&Attributes> {
    caller.access.as_deref().map(Access::attributes)
}
