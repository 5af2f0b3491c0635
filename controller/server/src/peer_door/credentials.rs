//! Credentials of callers for the other members: held here, sent by [`hold`] and dropped by [`forget`].

use atlas_raft::Sender;
use atlas_service::Service;
use atlas_types::{JobId, SecretText};
use atlas_wire::convert::credential_in;
use atlas_wire::proto::peer::v1::credential_service_client::CredentialServiceClient;
use atlas_wire::proto::peer::v1::credential_service_server::{CredentialService, CredentialServiceServer};
use atlas_wire::proto::peer::v1::{
    ForgetCredentialRequest, ForgetCredentialResponse, HoldCredentialRequest, HoldCredentialResponse,
};
use bytes::Bytes;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use super::sender::Members;

/// The service that answers the other members.
pub(super) fn service(service: Service, members: Members) -> CredentialServiceServer<CredentialDoor> {
    CredentialServiceServer::new(CredentialDoor(service, members))
}

/// Answers the other members.
pub(super) struct CredentialDoor(Service, Members);

#[tonic::async_trait]
impl CredentialService for CredentialDoor {
    async fn hold_credential(
        &self,
        request: Request<HoldCredentialRequest>,
    ) -> Result<Response<HoldCredentialResponse>, Status> {
        let sender = request.extensions().get::<Sender>().copied();
        let HoldCredentialRequest { cluster_id, job_id, credential } = request.into_inner();
        self.1.same_cluster(sender, &cluster_id)?;
        let held = self.0.hold_bearer(JobId(job_id), credential_in(&credential)?);
        held.map_err(|error| Status::resource_exhausted(error.to_string()))?;
        Ok(Response::new(HoldCredentialResponse {}))
    }

    async fn forget_credential(
        &self,
        request: Request<ForgetCredentialRequest>,
    ) -> Result<Response<ForgetCredentialResponse>, Status> {
        let sender = request.extensions().get::<Sender>().copied();
        let ForgetCredentialRequest { cluster_id, job_id } = request.into_inner();
        self.1.same_cluster(sender, &cluster_id)?;
        self.0.forget_bearer(JobId(job_id));
        Ok(Response::new(ForgetCredentialResponse {}))
    }
}

/// Gives another member the credential of a job's caller.
pub(crate) async fn hold(channel: Channel, cluster_id: Bytes, job: JobId, bearer: SecretText) -> Result<(), Status> {
    let credential = Bytes::from_owner(bearer);
    let request = HoldCredentialRequest { cluster_id, job_id: job.0, credential };
    CredentialServiceClient::new(channel).hold_credential(request).await.map(drop)
}

/// Tells another member that the job of a credential was refused.
pub(crate) async fn forget(channel: Channel, cluster_id: Bytes, job: JobId) -> Result<(), Status> {
    let request = ForgetCredentialRequest { cluster_id, job_id: job.0 };
    CredentialServiceClient::new(channel).forget_credential(request).await.map(drop)
}
