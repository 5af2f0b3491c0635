//! `MemberService`: joining, and membership changes that another member forwards.

use atlas_raft::{ChangeError, Handle, Leadership};
use atlas_types::MemberId;
use atlas_wire::proto::peer::v1 as wire;
use atlas_wire::proto::peer::v1::member_service_server::MemberService;
use tonic::{Request, Response, Status};

use super::sender::Members;
use super::status_of;
use crate::cluster::Cluster;

/// The service.
pub(super) struct Rpc {
    cluster: Cluster,
    handle: Handle,
    members: Members,
}

impl Rpc {
    pub(super) fn new(cluster: Cluster, handle: Handle, members: Members) -> Self {
        Self { cluster, handle, members }
    }

    /// A forwarded request is handled by this member only if it leads, and is never forwarded again.
    fn leads(&self) -> Result<(), Status> {
        if matches!(*self.handle.leadership().borrow(), Leadership::Leader { .. }) {
            return Ok(());
        }
        Err(refused(ChangeError::NotLeader { leader: None }))
    }
}

#[tonic::async_trait]
impl MemberService for Rpc {
    async fn join(&self, request: Request<wire::JoinRequest>) -> Result<Response<wire::JoinResponse>, Status> {
        self.cluster.join(request.into_inner()).await.map(Response::new)
    }

    async fn ready(&self, request: Request<wire::ReadyRequest>) -> Result<Response<wire::ReadyResponse>, Status> {
        let sender = self.members.check(&request)?;
        self.members.same_cluster(sender, &request.into_inner().cluster_id)?;
        Ok(Response::new(self.cluster.completeness().await))
    }

    async fn remove(&self, request: Request<wire::RemoveRequest>) -> Result<Response<wire::RemoveResponse>, Status> {
        let sender = self.members.check(&request)?;
        let wire::RemoveRequest { cluster_id, member_id } = request.into_inner();
        self.members.same_cluster(sender, &cluster_id)?;
        self.leads()?;
        self.handle.remove(MemberId(member_id)).await.map_err(refused)?;
        Ok(Response::new(wire::RemoveResponse {}))
    }

    async fn hand_over(
        &self,
        request: Request<wire::HandOverRequest>,
    ) -> Result<Response<wire::HandOverResponse>, Status> {
        let sender = self.members.check(&request)?;
        let wire::HandOverRequest { cluster_id, member_id } = request.into_inner();
        self.members.same_cluster(sender, &cluster_id)?;
        self.leads()?;
        let to = (member_id > 0).then_some(MemberId(member_id));
        let (member, term) = self.handle.transfer_leader(to).await.map_err(refused)?;
        Ok(Response::new(wire::HandOverResponse { member_id: member.0, term }))
    }
}

fn refused(error: ChangeError) -> Status {
    status_of(&error.into())
}
