//! Which member sends a call: that of its certificate, where TLS is on.

use atlas_raft::Sender;
use atlas_tls::Subject;
use atlas_types::MemberId;
use tonic::{Request, Status};

use crate::listen::Peer;

/// The member of a request's certificate; none for a controller that joins.
fn member<T>(request: &Request<T>) -> Result<Option<MemberId>, Status> {
    let proof = request.extensions().get::<Peer>().and_then(Peer::proof);
    match proof.and_then(|proof| Subject::of(&proof.name)) {
        Some(Subject::Controller(member)) => Ok(member.map(MemberId)),
        _ => Err(Status::unauthenticated("this cluster needs the certificate of a controller")),
    }
}

/// Lets members of the cluster through, and notes which one it is. A controller that joins is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Members {
    /// Whether there are certificates.
    pub(super) tls: bool,
}

impl Members {
    /// Refuses a controller that is no member.
    pub(super) fn check<T>(self, request: &Request<T>) -> Result<Option<Sender>, Status> {
        if !self.tls {
            return Ok(None);
        }
        match member(request)? {
            Some(member) => Ok(Some(Sender(member))),
            None => Err(Status::permission_denied("a controller that joins may only ask to join")),
        }
    }
}

impl tonic::service::Interceptor for Members {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(sender) = self.check(&request)? {
            request.extensions_mut().insert(sender);
        }
        Ok(request)
    }
}
