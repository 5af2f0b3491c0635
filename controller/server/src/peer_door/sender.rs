//! Which member sends a call: that of its certificate, where TLS is on.

use atlas_raft::{Claim, Refusal, Sender};
use atlas_tls::Subject;
use atlas_types::MemberId;
use tonic::{Request, Status};

use crate::listen::Peer;
use crate::watch::{Watch, named};

/// A call between controllers, in records.
const CALL: &str = "callController";

/// Lets members of the cluster through, and notes which one it is. A controller that joins is none.
#[derive(Clone)]
pub(super) struct Members {
    /// Whether there are certificates.
    pub(super) tls: bool,
    pub(super) watch: Watch,
    pub(super) cluster_id: u128,
}

impl Members {
    /// Refuses a controller that is no member.
    pub(super) fn check<T>(&self, request: &Request<T>) -> Result<Option<Sender>, Status> {
        if !self.tls {
            return Ok(None);
        }
        let proof = request.extensions().get::<Peer>().and_then(Peer::proof);
        let subject = proof.and_then(|proof| Subject::of(&proof.name));
        let refused = match subject {
            Some(Subject::Controller(Some(member))) => return Ok(Some(Sender(MemberId(member)))),
            Some(Subject::Controller(None)) => {
                Status::permission_denied("a controller that joins may only ask to join")
            }
            _ => Status::unauthenticated("this cluster needs the certificate of a controller"),
        };
        self.watch.turned_away(subject.as_ref(), subject.as_ref().map(named).unwrap_or_default(), CALL, None);
        Err(refused)
    }

    /// Refuses a call for another cluster.
    pub(super) fn same_cluster(&self, sender: Option<Sender>, found: &[u8]) -> Result<(), Status> {
        if found == self.cluster_id.to_be_bytes() {
            return Ok(());
        }
        self.refused(Refusal { sender: sender.map(|Sender(member)| member), claimed: Claim::Cluster(found.to_vec()) });
        Err(Status::failed_precondition("this member belongs to another cluster"))
    }

    /// Records a refused call.
    pub(super) fn refused(&self, refusal: Refusal) {
        let claimed = match refusal.claimed {
            Claim::Member(member) => format!("controller/{member}"),
            // An id has 16 bytes; a text of more says nothing.
            Claim::Cluster(id) => {
                "cluster/".to_owned() + &id.iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>()
            }
        };
        let proven = refusal.sender.map(|member| Subject::Controller(Some(member.0)));
        self.watch.turned_away(proven.as_ref(), claimed, CALL, None);
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
