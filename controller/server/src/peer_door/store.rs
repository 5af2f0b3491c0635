//! Artifacts and history for the other members of the group: [`serve`](service) answers them, [`Members`] asks them.

mod client;
mod convert;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_history::Gap;
use atlas_raft::Sender as Member;
use atlas_service::{ArtifactError, AuditPage, Sender, Service};
use atlas_types::{ErrorKind, EventSeq};
use atlas_wire::convert::digest_in;
use atlas_wire::limits::{CHUNK_BYTES, PEER_FRAME_BYTES_MAX};
use atlas_wire::proto::peer::v1::store_service_server::{StoreService, StoreServiceServer};
use atlas_wire::proto::peer::v1::{
    FetchHistoryRequest, FetchHistoryResponse, GetArtifactRequest, GetArtifactResponse, HoldArtifactsRequest,
    HoldArtifactsResponse, PutArtifactRequest, PutArtifactResponse, QueryHistoryRequest, QueryHistoryResponse,
    ReadAuditRequest, ReadAuditResponse,
};
use atlas_wire::{ConvertError, Error};
use futures::Stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Request, Response, Status, Streaming};

pub(crate) use client::Members;

use super::sender::Members as Check;
use super::status_of;

/// The most transfers at once, because each needs memory for one part. Further ones wait.
const TRANSFERS_MAX: usize = 32;
/// How long a peer may take to send the next part of a transfer.
const STALLED: Duration = Duration::from_secs(10);
/// The most artifacts in one request.
const DIGESTS_MAX: usize = 1_024;

/// The service that answers the other members.
pub(super) fn service(service: Service, members: Check, env: Env) -> StoreServiceServer<StoreDoor> {
    StoreServiceServer::new(StoreDoor { service, members, env, transfers: Arc::new(Semaphore::new(TRANSFERS_MAX)) })
        .max_decoding_message_size(PEER_FRAME_BYTES_MAX)
        .max_encoding_message_size(PEER_FRAME_BYTES_MAX)
}

/// Answers the other members.
pub(super) struct StoreDoor {
    service: Service,
    members: Check,
    env: Env,
    transfers: Arc<Semaphore>,
}

impl StoreDoor {
    async fn transfer(&self) -> Result<OwnedSemaphorePermit, Status> {
        self.transfers.clone().acquire_owned().await.map_err(|_| Status::unavailable("stopping"))
    }

    /// The next part that a peer sends. None at the end.
    async fn next(&self, parts: &mut Streaming<PutArtifactRequest>) -> Result<Option<PutArtifactRequest>, Status> {
        tokio::select! {
            biased;
            part = parts.message() => part,
            () = self.env.clock.sleep(STALLED) => Err(Status::deadline_exceeded("the transfer stalled")),
        }
    }
}

#[tonic::async_trait]
impl StoreService for StoreDoor {
    type GetArtifactStream = Pin<Box<dyn Stream<Item = Result<GetArtifactResponse, Status>> + Send>>;

    async fn hold_artifacts(
        &self,
        request: Request<HoldArtifactsRequest>,
    ) -> Result<Response<HoldArtifactsResponse>, Status> {
        let sender = sender(&request);
        let HoldArtifactsRequest { cluster_id, digests } = request.into_inner();
        self.members.same_cluster(sender, &cluster_id)?;
        if digests.len() > DIGESTS_MAX {
            let (field, found) = ("digests", digests.len());
            return Err(ConvertError::TooLarge { field, found, max: DIGESTS_MAX }.into());
        }
        let digests = digests.iter().map(|digest| digest_in("digests", digest)).collect::<Result<_, _>>()?;
        let held = self.service.artifacts().hold(digests).await.map_err(|error| refused(&error))?;
        Ok(Response::new(HoldArtifactsResponse { held }))
    }

    async fn put_artifact(
        &self,
        request: Request<Streaming<PutArtifactRequest>>,
    ) -> Result<Response<PutArtifactResponse>, Status> {
        let sender = sender(&request);
        let mut parts = request.into_inner();
        let first = self.next(&mut parts).await?.and_then(|part| part.head);
        let head = first.ok_or_else(|| Status::invalid_argument("an artifact must begin with its header"))?;
        self.members.same_cluster(sender, &head.cluster_id)?;
        let digest = digest_in("head.digest", &head.digest)?;
        let max = self.service.artifacts().bytes_max();
        if head.size_bytes > max {
            return Err(refused(&ArtifactError::TooLarge { bytes: head.size_bytes, max }));
        }
        let _permit = self.transfer().await?;
        let mut receiver = self.service.artifacts().receive(digest).await.map_err(|error| refused(&error))?;
        while let Some(part) = self.next(&mut parts).await? {
            if part.head.is_some() || part.chunk.len() > CHUNK_BYTES {
                return Err(Status::invalid_argument(
                    "an artifact must consist of parts of a bounded size and one header",
                ));
            }
            receiver.write(part.chunk).await.map_err(|error| refused(&error))?;
        }
        receiver.finish().await.map_err(|error| refused(&error))?;
        Ok(Response::new(PutArtifactResponse {}))
    }

    async fn get_artifact(
        &self,
        request: Request<GetArtifactRequest>,
    ) -> Result<Response<Self::GetArtifactStream>, Status> {
        let sender = sender(&request);
        let GetArtifactRequest { cluster_id, digest } = request.into_inner();
        self.members.same_cluster(sender, &cluster_id)?;
        let digest = digest_in("digest", &digest)?;
        let permit = self.transfer().await?;
        let sender = self.service.artifacts().open(digest).await.map_err(|error| refused(&error))?;
        Ok(Response::new(Box::pin(chunks(sender, permit))))
    }

    async fn fetch_history(
        &self,
        request: Request<FetchHistoryRequest>,
    ) -> Result<Response<FetchHistoryResponse>, Status> {
        let sender = sender(&request);
        let FetchHistoryRequest { cluster_id, after, through } = request.into_inner();
        self.members.same_cluster(sender, &cluster_id)?;
        let gap = Gap { after: EventSeq(after), through: EventSeq(through) };
        let part = self.service.history_part(gap).await.map_err(|error| failed(&error))?;
        Ok(Response::new(convert::part_out(part)))
    }

    async fn query_history(
        &self,
        request: Request<QueryHistoryRequest>,
    ) -> Result<Response<QueryHistoryResponse>, Status> {
        let sender = sender(&request);
        let QueryHistoryRequest { cluster_id, through, question } = request.into_inner();
        self.members.same_cluster(sender, &cluster_id)?;
        let query = convert::query_in(question)?;
        let found = self.service.history_query(EventSeq(through), query).await.map_err(|error| failed(&error))?;
        Ok(Response::new(convert::found_out(&found)))
    }

    async fn read_audit(&self, request: Request<ReadAuditRequest>) -> Result<Response<ReadAuditResponse>, Status> {
        let sender = sender(&request);
        let request = request.into_inner();
        self.members.same_cluster(sender, &request.cluster_id)?;
        let page = self.service.audit().page(convert::audit_in(request)?).await.map_err(|error| status_of(&error))?;
        let AuditPage { lines, last, more, end } = page;
        Ok(Response::new(ReadAuditResponse { lines, last, more, end }))
    }
}

fn sender<T>(request: &Request<T>) -> Option<Member> {
    request.extensions().get::<Member>().copied()
}

/// An artifact in parts. If it turns out to be damaged, the stream ends with an error.
fn chunks(
    sender: Sender,
    permit: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<GetArtifactResponse, Status>> + Send {
    futures::stream::unfold(Some((sender, permit)), |state| async move {
        let (mut sender, permit) = state?;
        match sender.next().await {
            Ok(chunk) => chunk.map(|chunk| (Ok(GetArtifactResponse { chunk }), Some((sender, permit)))),
            Err(error) => Some((Err(refused(&error)), None)),
        }
    })
}

fn refused(error: &ArtifactError) -> Status {
    let kind = match error {
        // The peer sent damaged data.
        ArtifactError::Damaged(_) => ErrorKind::Gone,
        error => error.kind(),
    };
    if kind == ErrorKind::Internal {
        tracing::error!(error = error as &dyn std::error::Error, "a peer's artifact was not served");
    }
    Error::new(kind, error.to_string()).into()
}

fn failed(error: &atlas_service::Error) -> Status {
    Error::new(error.kind(), error.to_string()).into()
}
