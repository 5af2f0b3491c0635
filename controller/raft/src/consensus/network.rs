//! Messages between members over gRPC: one channel per peer, opened on first use, with bodies in our own encoding.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atlas_env::Env;
use atlas_wire::limits::{CHUNK_BYTES, PEER_FRAME_BYTES_MAX};
use atlas_wire::proto::peer::v1 as wire;
use atlas_wire::proto::peer::v1::peer_service_client::PeerServiceClient;
use futures::{Stream, StreamExt, stream};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::RPCOption;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendResult, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::{OptionalSend, RaftNetworkFactory, RaftNetworkV2};
use prost::Message;
use tonic::transport::Channel;

use super::deadline::{Sent, in_time};
use super::message::{
    self, AppendAnswer, AppendBody, SnapshotAnswer, TransferAnswer, TransferBody, VoteAnswer, VoteAsk,
};
use super::snapshot::SnapshotFile;
use super::unhurried::{Hurry, unhurried};
use super::{RaftVote, Types};
use crate::channel::peer_channel;
use crate::member::Member;

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
type BoxStream<'a, T> = Pin<Box<dyn Stream<Item = T> + Send + 'a>>;
type RpcError = RPCError<Types>;
type Snapshot = openraft::alias::SnapshotOf<Types, SnapshotFile>;

/// A peer that does not answer an append within this time gets the append again. Longer than a slow disk needs for one
/// group.
const ANSWER_PATIENCE: Duration = Duration::from_secs(3);
/// The time limit for sending one snapshot.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(600);

/// Makes clients for the members of one cluster.
#[derive(Clone)]
pub(crate) struct Network {
    pub(crate) cluster_id: u128,
    pub(crate) addresses: Addresses,
    pub(crate) hurry: Hurry,
    pub(crate) env: Env,
}

/// The current addresses reported by the members, by number. They are newer than the membership, which is updated
/// later.
#[derive(Clone, Default)]
pub(crate) struct Addresses(Arc<Mutex<BTreeMap<u64, String>>>);

impl Addresses {
    /// The address that a member last reported.
    pub(crate) fn get(&self, member: u64) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&member).cloned()
    }

    /// Stores the address that a member reports.
    pub(crate) fn set(&self, member: u64, address: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(member, address.to_owned());
    }
}

/// A client for one member.
pub(crate) struct PeerClient {
    network: Network,
    member: u64,
    cluster_id: Vec<u8>,
    address: String,
    client: Client,
}

type Client = Result<PeerServiceClient<Channel>, String>;

impl RaftNetworkFactory<Types> for Network {
    type Network = PeerClient;

    async fn new_client(&mut self, target: u64, node: &Member) -> PeerClient {
        let address = self.addresses.get(target).unwrap_or_else(|| node.peer.clone());
        let cluster_id = self.cluster_id.to_be_bytes().to_vec();
        PeerClient { client: self.client(&address), network: self.clone(), member: target, cluster_id, address }
    }
}

impl Network {
    fn client(&self, address: &str) -> Client {
        let client = peer_channel(&self.env, address).map(|channel| {
            PeerServiceClient::new(channel)
                .max_decoding_message_size(PEER_FRAME_BYTES_MAX)
                .max_encoding_message_size(PEER_FRAME_BYTES_MAX)
        });
        client.map_err(|error| format!("\"{address}\" is not an address: {error}"))
    }
}

impl PeerClient {
    /// Returns the client, and creates a new one if the member reports another address.
    fn client(&mut self) -> Result<PeerServiceClient<Channel>, RpcError> {
        if let Some(moved) = self.network.addresses.get(self.member).filter(|moved| *moved != self.address) {
            self.client = self.network.client(&moved);
            self.address = moved;
        }
        self.client.clone().map_err(|error| Unreachable::new(&io::Error::other(error)).into())
    }

    /// Converts the error of a failed snapshot transfer. If the peer could not use the snapshot, openraft waits before
    /// it sends it again.
    fn snapshot_refused(&self, status: tonic::Status) -> StreamingError<Types> {
        if status.code() != tonic::Code::DataLoss {
            return streaming(failed(status));
        }
        tracing::warn!(member = self.member, %status, "a member refused the snapshot it received");
        streaming(Unreachable::new(&status).into())
    }

    async fn ask_vote(
        &mut self,
        ask: VoteRequest<Types>,
        pre: bool,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RpcError> {
        let body = VoteAsk::of(&ask, pre).encode_to_vec().into();
        let mut request = tonic::Request::new(wire::VoteRequest {
            cluster_id: self.cluster_id.clone().into(),
            body,
            to: self.member,
        });
        request.set_timeout(option.hard_ttl());
        let answer = self.client()?.vote(request).await.map_err(failed)?.into_inner();
        let answer: VoteAnswer = message::decode("a vote", answer.body).map_err(garbled)?;
        answer.try_into().map_err(garbled)
    }
}

impl RaftNetworkV2<Types> for PeerClient {
    type SnapshotData = SnapshotFile;

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, RpcError> {
        let ttl = option.hard_ttl();
        let once = Box::pin(stream::once(async move { rpc }));
        let mut answers = self.stream_append(once, option).await?;
        let answer = tokio::time::timeout(ttl, answers.next()).await;
        match answer {
            Ok(Some(answer)) => answer.map(AppendEntriesResponse::from),
            Ok(None) => Err(NetworkError::new(&io::Error::other("the peer ended the stream without an answer")).into()),
            Err(late) => Err(NetworkError::new(&late).into()),
        }
    }

    fn stream_append<'s, S>(
        &'s mut self,
        mut input: S,
        _option: RPCOption,
    ) -> BoxFuture<'s, Result<BoxStream<'s, Result<StreamAppendResult<Types>, RpcError>>, RpcError>>
    where
        S: Stream<Item = AppendEntriesRequest<Types>> + OptionalSend + Unpin + 'static,
    {
        // The stream lives as long as the leadership; each answer has a deadline.
        Box::pin(async move {
            let cluster_id: bytes::Bytes = self.cluster_id.clone().into();
            let to = self.member;
            let sent = Sent::default();
            let counted = sent.clone();
            // Waits for the first append before the stream is opened, because openraft delays that append after a
            // failure. Otherwise a peer that refuses connections would be called in a busy loop.
            let Some(first) = input.next().await else { return Ok(stream::empty().boxed()) };
            // The first append may ask for the peer's last log id, so it is not delayed.
            let first = stream::once(std::future::ready((first, false)));
            let others =
                unhurried(input, Arc::clone(&self.network.env.clock), self.network.hurry.of(to)).map(|append| {
                    let quiet = append.entries.is_empty();
                    (append, quiet)
                });
            let requests = first.chain(others).map(move |(append, quiet)| {
                if !quiet {
                    counted.count();
                }
                let body = AppendBody::of(&append).encode_to_vec().into();
                wire::AppendRequest { cluster_id: cluster_id.clone(), body, to, quiet }
            });
            let answers = self.client()?.append(requests).await.map_err(failed)?.into_inner();
            let answers = answers.map(|answer| {
                let answer = answer.map_err(failed)?;
                let answer: AppendAnswer = message::decode("an answer to an append", answer.body).map_err(garbled)?;
                answer.try_into().map_err(garbled)
            });
            let late = || Err(NetworkError::new(&io::Error::from(io::ErrorKind::TimedOut)).into());
            Ok(Box::pin(in_time(answers, sent, ANSWER_PATIENCE, late)) as BoxStream<'s, _>)
        })
    }

    async fn vote(&mut self, rpc: VoteRequest<Types>, option: RPCOption) -> Result<VoteResponse<Types>, RpcError> {
        self.ask_vote(rpc, false, option).await
    }

    async fn pre_vote(&mut self, rpc: VoteRequest<Types>, option: RPCOption) -> Result<VoteResponse<Types>, RpcError> {
        self.ask_vote(rpc, true, option).await
    }

    async fn full_snapshot(
        &mut self,
        vote: RaftVote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let file = snapshot.snapshot.clone();
        if file.is_damaged() {
            return Err(own_damage());
        }
        let head = wire::SnapshotHead {
            cluster_id: self.cluster_id.clone().into(),
            body: message::SnapshotHead::of(vote, &snapshot.meta, snapshot.snapshot.bytes).encode_to_vec().into(),
            to: self.member,
        };
        let head = wire::SnapshotRequest { head: Some(head), chunk: bytes::Bytes::new() };
        let chunks = stream::iter(snapshot.snapshot.chunks(CHUNK_BYTES))
            .map(|chunk| wire::SnapshotRequest { head: None, chunk: chunk.into() });
        // If the snapshot is damaged, the stream stays open until the call is dropped. A stream that ends looks
        // complete to the peer.
        let held = file.clone();
        let end = stream::once(async move {
            if held.is_damaged() {
                std::future::pending().await
            }
        });
        let end = end.filter_map(|()| std::future::ready(None));
        let mut request = tonic::Request::new(stream::iter([head]).chain(chunks).chain(end));
        request.set_timeout(SNAPSHOT_TIMEOUT);
        let mut client = self.client().map_err(streaming)?;
        let sent = tokio::select! {
            biased;
            closed = cancel => return Err(closed.into()),
            () = file.damaged() => return Err(own_damage()),
            sent = client.snapshot(request) => sent,
        };
        let answer = sent.map_err(|status| self.snapshot_refused(status))?.into_inner();
        let answer: SnapshotAnswer =
            message::decode("an answer to a snapshot", answer.body).map_err(|error| streaming(garbled(error)))?;
        answer.try_into().map_err(|error| streaming(garbled(error)))
    }

    async fn transfer_leader(
        &mut self,
        req: TransferLeaderRequest<Types>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<Types>, RpcError> {
        let body = TransferBody::of(&req).encode_to_vec().into();
        let mut request = tonic::Request::new(wire::TransferRequest {
            cluster_id: self.cluster_id.clone().into(),
            body,
            to: self.member,
        });
        request.set_timeout(option.hard_ttl());
        let answer = self.client()?.transfer(request).await.map_err(failed)?.into_inner();
        let answer: TransferAnswer = message::decode("an answer to a transfer", answer.body).map_err(garbled)?;
        answer.try_into().map_err(garbled)
    }
}

/// Maps a failed call to an error on which openraft waits before it tries again.
#[expect(clippy::needless_pass_by_value, reason = "shaped for map_err")]
fn failed(status: tonic::Status) -> RpcError {
    match status.code() {
        tonic::Code::Unavailable => Unreachable::new(&status).into(),
        _ => NetworkError::new(&status).into(),
    }
}

/// The error for a damaged snapshot of this member. The peer gets the next snapshot, which is being written.
fn own_damage() -> StreamingError<Types> {
    streaming(Unreachable::new(&io::Error::other("the snapshot is damaged and will be rewritten")).into())
}

/// A malformed answer.
#[expect(clippy::needless_pass_by_value, reason = "shaped for map_err")]
fn garbled(error: super::body::BodyError) -> RpcError {
    NetworkError::new(&error).into()
}

fn streaming(error: RpcError) -> StreamingError<Types> {
    match error {
        RPCError::Timeout(error) => error.into(),
        RPCError::Unreachable(error) => error.into(),
        RPCError::Network(error) => error.into(),
        RPCError::RemoteError(error) => NetworkError::new(&error).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use atlas_env::{Connection, Listener, Net};

    use super::*;

    /// Refuses all connections and counts whether one was tried.
    #[derive(Default)]
    struct Nobody(AtomicBool);

    impl Net for Nobody {
        fn listen(&self, _addr: std::net::SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
            Box::pin(async { Err(io::ErrorKind::Unsupported.into()) })
        }

        fn connect<'a>(&'a self, _authority: &'a str) -> BoxFuture<'a, io::Result<Connection>> {
            self.0.store(true, Ordering::Relaxed);
            Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) })
        }
    }

    #[tokio::test]
    async fn a_peer_is_connected_to_when_there_is_something_to_say() {
        let nobody = Arc::new(Nobody::default());
        let env = Env { net: nobody.clone(), ..Env::system() };
        let mut network = Network { cluster_id: 7, addresses: Addresses::default(), hurry: Hurry::default(), env };
        let mut peer = network.new_client(2, &Member::at("nobody:1")).await;
        let waiting = Duration::from_millis(100);
        let silent = peer.stream_append(stream::pending(), RPCOption::new(waiting));
        assert!(tokio::time::timeout(waiting, silent).await.is_err(), "it waits for the first request");
        assert!(!nobody.0.load(Ordering::Relaxed));
        let vote = RaftVote { leader_id: openraft::vote::RaftLeaderId::new(1, 1), committed: true };
        let request = AppendEntriesRequest { vote, prev_log_id: None, entries: Vec::new(), leader_commit: None };
        let said = peer.stream_append(stream::iter([request]), RPCOption::new(waiting)).await;
        assert!(matches!(said.map(drop), Err(RPCError::Unreachable(_))));
        assert!(nobody.0.load(Ordering::Relaxed));
    }
}
