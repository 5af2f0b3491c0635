//! The peer door: the gRPC calls that this member answers for the other members. Mounted by the controller's gRPC
//! server.

mod receive;
mod streams;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use atlas_state::State;
use atlas_types::MemberId;
use atlas_wire::limits::PEER_FRAME_BYTES_MAX;
use atlas_wire::proto::peer::v1 as wire;
use atlas_wire::proto::peer::v1::peer_service_server::{PeerService, PeerServiceServer};
use futures::{Stream, StreamExt, stream};
use openraft::raft::{AppendEntriesRequest, TransferLeaderRequest};
use prost::Message;
use tokio::sync::watch;
use tonic::{Request, Response, Status, Streaming};

pub(crate) use self::receive::{Load, Receiver};
pub(crate) use self::streams::{Streams, Succession};

use crate::consensus::Types;
use crate::consensus::message::{
    AppendAnswer, AppendBody, SnapshotAnswer, SnapshotHead, TransferAnswer, TransferBody, VoteAnswer, VoteAsk, decode,
};
use crate::consensus::unhurried::Hurry;
use crate::forward;
use crate::local::Local;
use crate::machine::Raft;
use crate::membership::Group;

/// The member that sends a call, as its certificate says. The server of the door puts it into the extensions of a
/// request; without certificates there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sender(pub MemberId);

/// A call that was refused because of who sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The member that its certificate proves; none without certificates.
    pub sender: Option<MemberId>,
    pub claimed: Claim,
}

/// What a refused call claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// That another member sends it.
    Member(MemberId),
    /// That it is for the cluster with this id, which is another one.
    Cluster(Vec<u8>),
}

/// Is told of each call that is refused because of who sent it. Must not block.
pub type RefusalWatch = Arc<dyn Fn(Refusal) + Send + Sync>;

/// Answers calls of the other members. Cheap to clone.
#[derive(Clone)]
pub struct PeerDoor {
    pub(crate) raft: Raft,
    pub(crate) cluster_id: u128,
    pub(crate) receiver: Receiver,
    pub(crate) local: Local,
    pub(crate) applied: watch::Receiver<State>,
    pub(crate) group: Group,
    pub(crate) hurry: Hurry,
    pub(crate) streams: Streams,
    pub(crate) watch: Option<RefusalWatch>,
}

impl PeerDoor {
    /// The same door, which tells of calls that it refuses because of who sent them.
    #[must_use]
    pub fn watched(self, watch: RefusalWatch) -> Self {
        Self { watch: Some(watch), ..self }
    }

    fn tell(&self, sender: Option<Sender>, claimed: Claim) {
        if let Some(watch) = &self.watch {
            watch(Refusal { sender: sender.map(|Sender(member)| member), claimed });
        }
    }

    /// Refuses a call in the name of another member.
    fn is_from(&self, sender: Option<Sender>, claimed: u64) -> Result<(), Status> {
        match sender {
            Some(Sender(member)) if member.0 != claimed => {
                self.tell(sender, Claim::Member(MemberId(claimed)));
                Err(Status::permission_denied(format!("member {member} may not act for member {claimed}")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a call for another cluster.
    pub(crate) fn is_for_cluster(&self, sender: Option<Sender>, found: &[u8]) -> Result<(), Status> {
        same_cluster(self.cluster_id, found).inspect_err(|_| self.tell(sender, Claim::Cluster(found.to_vec())))
    }

    /// The door as a service of a gRPC server.
    pub fn into_service(self) -> PeerServiceServer<Self> {
        PeerServiceServer::new(self)
            .max_decoding_message_size(PEER_FRAME_BYTES_MAX)
            .max_encoding_message_size(PEER_FRAME_BYTES_MAX)
    }
}

impl std::fmt::Debug for PeerDoor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PeerDoor({:032x})", self.cluster_id)
    }
}

#[tonic::async_trait]
impl PeerService for PeerDoor {
    type AppendStream = Pin<Box<dyn Stream<Item = Result<wire::AppendResponse, Status>> + Send>>;

    async fn vote(&self, request: Request<wire::VoteRequest>) -> Result<Response<wire::VoteResponse>, Status> {
        let sender = request.extensions().get::<Sender>().copied();
        let wire::VoteRequest { cluster_id, body, to } = request.into_inner();
        self.meant(sender, &cluster_id, to)?;
        let ask: VoteAsk = decode("a vote", body).map_err(refused)?;
        let (ask, pre) = ask.into_raft().map_err(refused)?;
        self.is_from(sender, ask.vote.leader_id.node_id)?;
        let answer = if pre { self.raft.pre_vote(ask).await } else { self.raft.vote(ask).await };
        let body = VoteAnswer::from(answer.map_err(stopped)?).encode_to_vec().into();
        Ok(Response::new(wire::VoteResponse { body }))
    }

    async fn append(
        &self,
        request: Request<Streaming<wire::AppendRequest>>,
    ) -> Result<Response<Self::AppendStream>, Status> {
        let door = self.clone();
        let sender = request.extensions().get::<Sender>().copied();
        let quiet = Quiet::default();
        let asked = quiet.clone();
        let mut open = None;
        let requests = request.into_inner().map(move |request| {
            let wire::AppendRequest { cluster_id, body, to, quiet } = request?;
            asked.push(quiet);
            door.meant(sender, &cluster_id, to)?;
            let append: AppendBody = decode("an append", body).map_err(refused)?;
            let append = AppendEntriesRequest::<Types>::try_from(append).map_err(refused)?;
            door.is_from(sender, append.vote.leader_id.node_id)?;
            // A stream is of one leader in one term.
            open.get_or_insert_with(|| door.streams.open(append.vote.leader_id));
            Ok(append)
        });
        // A message that cannot be decoded ends the stream with an error. Skipping it would leave a gap in the log.
        let refusal = Arc::new(Mutex::new(None));
        let noted = Arc::clone(&refusal);
        let requests = requests.scan((), move |(), append| {
            let append = append.map_err(|status: Status| {
                tracing::debug!(%status, "a peer's append stream ends");
                *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
            });
            std::future::ready(append.ok())
        });
        let answers = self.raft.stream_append(requests).filter_map(move |answer| {
            // Answers that tell the leader nothing new are not sent, so that the leader is not woken for them.
            let left_out = quiet.next() && matches!(answer, Ok(Ok(_)));
            std::future::ready((!left_out).then(|| {
                let body = AppendAnswer::from(answer.map_err(stopped)?).encode_to_vec().into();
                Ok(wire::AppendResponse { body })
            }))
        });
        let last = stream::once(async move { refusal.lock().unwrap_or_else(PoisonError::into_inner).take() });
        let last = last.filter_map(|refusal| std::future::ready(refusal.map(Err)));
        Ok(Response::new(Box::pin(answers.chain(last))))
    }

    async fn snapshot(
        &self,
        request: Request<Streaming<wire::SnapshotRequest>>,
    ) -> Result<Response<wire::SnapshotResponse>, Status> {
        let sender = request.extensions().get::<Sender>().copied();
        let mut parts = request.into_inner();
        let first = parts.message().await?.and_then(|part| part.head);
        let head = first.ok_or_else(|| Status::invalid_argument("a snapshot must begin with its header"))?;
        self.meant(sender, &head.cluster_id, head.to)?;
        let head: SnapshotHead = decode("a snapshot's header", head.body).map_err(refused)?;
        let bytes = head.announced();
        let (vote, meta) = head.into_raft().map_err(refused)?;
        self.is_from(sender, vote.leader_id.node_id)?;
        let snapshot = self.receiver.take(&meta, bytes, parts).await?;
        tracing::info!(last = ?meta.last_log_id, "received a snapshot");
        let answer = self.raft.install_full_snapshot(vote, openraft::Snapshot { meta, snapshot }).await;
        let answer = answer.map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(Response::new(wire::SnapshotResponse { body: SnapshotAnswer::from(answer).encode_to_vec().into() }))
    }

    async fn transfer(
        &self,
        request: Request<wire::TransferRequest>,
    ) -> Result<Response<wire::TransferResponse>, Status> {
        let sender = request.extensions().get::<Sender>().copied();
        let wire::TransferRequest { cluster_id, body, to } = request.into_inner();
        self.meant(sender, &cluster_id, to)?;
        let transfer: TransferBody = decode("a transfer", body).map_err(refused)?;
        let transfer: TransferLeaderRequest<Types> = transfer.try_into().map_err(refused)?;
        self.is_from(sender, transfer.from_leader().leader_id.node_id)?;
        let answer = self.raft.handle_transfer_leader(transfer).await;
        let answer = answer.map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(Response::new(wire::TransferResponse { body: TransferAnswer::from(answer).encode_to_vec().into() }))
    }

    async fn hello(&self, request: Request<wire::HelloRequest>) -> Result<Response<wire::HelloResponse>, Status> {
        let sender = request.extensions().get::<Sender>().copied();
        let asked = request.into_inner();
        self.is_from(sender, asked.member_id)?;
        if !asked.cluster_id.is_empty() {
            self.is_for_cluster(sender, &asked.cluster_id)?;
        }
        Ok(Response::new(self.group.hello(asked)))
    }

    async fn propose(&self, request: Request<wire::ProposeRequest>) -> Result<Response<wire::ProposeResponse>, Status> {
        let sender = request.extensions().get::<Sender>().copied();
        self.is_from(sender, request.get_ref().from)?;
        forward::door::propose(self, sender, request.into_inner()).await.map(Response::new)
    }

    async fn read_index(
        &self,
        request: Request<wire::ReadIndexRequest>,
    ) -> Result<Response<wire::ReadIndexResponse>, Status> {
        let sender = request.extensions().get::<Sender>().copied();
        self.is_from(sender, request.get_ref().from)?;
        forward::door::read_index(self, sender, request.into_inner()).await.map(Response::new)
    }
}

impl PeerDoor {
    /// Refuses a message for another cluster, or for the member that had this address before. An answer in place of
    /// that member would tell the leader that it has lost its log.
    fn meant(&self, sender: Option<Sender>, cluster_id: &[u8], to: u64) -> Result<(), Status> {
        self.is_for_cluster(sender, cluster_id)?;
        if to == *self.raft.node_id() {
            return Ok(());
        }
        Err(Status::failed_precondition("another member now has this address"))
    }
}

/// For each append that Raft has not answered yet, in order, whether it needs no answer.
#[derive(Clone, Default)]
struct Quiet(Arc<Mutex<VecDeque<bool>>>);

impl Quiet {
    fn push(&self, quiet: bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(quiet);
    }

    /// Whether the append that Raft answers now needs no answer.
    fn next(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front().unwrap_or(false)
    }
}

fn same_cluster(own: u128, found: &[u8]) -> Result<(), Status> {
    if found == own.to_be_bytes() {
        return Ok(());
    }
    Err(Status::failed_precondition("this member belongs to another cluster"))
}

pub(crate) fn refused(error: impl std::error::Error) -> Status {
    Status::invalid_argument(error.to_string())
}

fn stopped(error: impl std::error::Error) -> Status {
    Status::unavailable(error.to_string())
}
