//! Requests of a follower to its leader, over one connection that is kept while the leader stays the same.

use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_types::{MemberId, Request, Seq};
use atlas_wire::limits::PEER_FRAME_BYTES_MAX;
use atlas_wire::proto::peer::v1::peer_service_client::PeerServiceClient;
use atlas_wire::proto::peer::v1::{ForwardResult, ProposeRequest, ReadIndexRequest};
use tokio::sync::Mutex;
use tonic::Status;
use tonic::transport::Channel;

use crate::channel;
use crate::error::{ProposeError, ReadError};
use crate::local::Answers;
use crate::member::Peer;

type Client = PeerServiceClient<Channel>;

/// The time limit for a proposal at the leader: longer than an entry may be in flight there.
const PROPOSE_MAX: Duration = Duration::from_secs(6);
/// The time limit for the leader to confirm a read with its quorum.
const READ_MAX: Duration = Duration::from_secs(1);

/// Calls the leader. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LeaderLink {
    cluster_id: bytes::Bytes,
    member: MemberId,
    env: Env,
    /// The client of the leader that was called last, and its address.
    client: Arc<Mutex<Option<(String, Client)>>>,
}

impl LeaderLink {
    /// A link of `member` that is not connected yet.
    pub(crate) fn new(cluster_id: u128, member: MemberId, env: Env) -> Self {
        Self { cluster_id: cluster_id.to_be_bytes().to_vec().into(), member, env, client: Arc::default() }
    }

    /// Proposes at `leader`. Also returns how many entries the leader had applied when it answered.
    pub(super) async fn propose(&self, leader: &Peer, requests: &[Request]) -> Result<(Answers, Seq), ProposeError> {
        let not_leader = || ProposeError::NotLeader { leader: None };
        let requests = atlas_format::encode_requests(requests);
        if requests.len() > PEER_FRAME_BYTES_MAX / 2 {
            return Err(ProposeError::Overloaded);
        }
        let mut client = self.client(leader).await.ok_or_else(not_leader)?;
        let ask =
            ProposeRequest { cluster_id: self.cluster_id.clone(), requests: requests.into(), from: self.member.0 };
        let mut request = tonic::Request::new(ask);
        request.set_timeout(PROPOSE_MAX);
        let answer = match client.propose(request).await {
            Ok(answer) => answer.into_inner(),
            Err(status) => {
                self.failed(leader, &status).await;
                return Err(ProposeError::Unknown);
            }
        };
        match answer.result() {
            ForwardResult::Done => {
                // An answer that cannot be decoded counts as lost.
                let answers = atlas_format::decode_outcomes(&answer.answers).map_err(|_| ProposeError::Unknown)?;
                Ok((answers, Seq(answer.seq)))
            }
            ForwardResult::NotLeader => Err(not_leader()),
            ForwardResult::Overloaded => Err(ProposeError::Overloaded),
            ForwardResult::NoSpace => Err(ProposeError::NoSpace),
            ForwardResult::Unknown | ForwardResult::Unspecified => Err(ProposeError::Unknown),
        }
    }

    /// Asks `leader` how many entries a member must have applied before it may answer a linearizable read.
    pub(super) async fn read_index(&self, leader: &Peer) -> Result<Seq, ReadError> {
        let not_leader = || ReadError::NotLeader { leader: None };
        let mut client = self.client(leader).await.ok_or_else(not_leader)?;
        let mut request =
            tonic::Request::new(ReadIndexRequest { cluster_id: self.cluster_id.clone(), from: self.member.0 });
        request.set_timeout(READ_MAX);
        let answer = match client.read_index(request).await {
            Ok(answer) => answer.into_inner(),
            Err(status) => {
                self.failed(leader, &status).await;
                return Err(not_leader());
            }
        };
        match answer.result() {
            ForwardResult::Done => Ok(Seq(answer.seq)),
            ForwardResult::Overloaded => Err(ReadError::Overloaded),
            ForwardResult::NotLeader | ForwardResult::Unknown | ForwardResult::NoSpace | ForwardResult::Unspecified => {
                Err(not_leader())
            }
        }
    }

    /// A client that is connected to `leader`; none if it cannot be reached.
    async fn client(&self, leader: &Peer) -> Option<Client> {
        if leader.address.is_empty() {
            return None;
        }
        // The lock is held while connecting, so that concurrent callers share one connection.
        let mut kept = self.client.lock().await;
        if let Some((address, client)) = &*kept
            && *address == leader.address
        {
            return Some(client.clone());
        }
        *kept = None;
        let channel = channel::connected(&self.env, &leader.address).await;
        let channel =
            channel.inspect_err(|error| tracing::debug!(%leader, %error, "could not reach the leader")).ok()?;
        let client = PeerServiceClient::new(channel)
            .max_decoding_message_size(PEER_FRAME_BYTES_MAX)
            .max_encoding_message_size(PEER_FRAME_BYTES_MAX);
        *kept = Some((leader.address.clone(), client.clone()));
        Some(client)
    }

    /// Handles a failed call: the next call connects again. A connection error then proves that nothing was sent.
    async fn failed(&self, leader: &Peer, status: &Status) {
        tracing::debug!(%leader, %status, "a call to the leader failed");
        let mut kept = self.client.lock().await;
        if kept.as_ref().is_some_and(|(address, _)| *address == leader.address) {
            *kept = None;
        }
    }
}
