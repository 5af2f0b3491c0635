//! Calls to the other members: one channel each, opened on first use.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use atlas_env::Env;
use atlas_history::{Gap, Part};
use atlas_raft::{Handle, peer_channel};
use atlas_service::{
    Arriving, ArrivingLines, AuditAsk, AuditPage, Following, Group, LineCursor, Outgoing, PeerAnswer, PeerError, Peers,
    Query, QueryResult,
};
use atlas_types::{Digest, ErrorKind, EventSeq, JobId, MemberId, SecretText};
use atlas_wire::Error;
use atlas_wire::convert::digest_out;
use atlas_wire::limits::PEER_FRAME_BYTES_MAX;
use atlas_wire::proto::peer::v1::store_service_client::StoreServiceClient;
use atlas_wire::proto::peer::v1::{
    ArtifactHead, FetchHistoryRequest, GetArtifactRequest, HoldArtifactsRequest, PutArtifactRequest,
    QueryHistoryRequest, ReadAuditRequest,
};
use bytes::Bytes;
use futures::{Stream, stream};
use tonic::Status;
use tonic::transport::Channel;

use super::{STALLED, convert};
use crate::peer_door::{credentials, lines};

/// The time limit for an answer that needs disk access, or a history that first catches up.
const ANSWER_MAX: Duration = Duration::from_secs(8);
/// The slowest transfer rate that is accepted.
const BYTES_PER_SECOND_MIN: u64 = 1 << 20;

type Client = StoreServiceClient<Channel>;

/// The other members of the group.
pub(crate) struct Members {
    handle: Handle,
    cluster_id: Bytes,
    env: Env,
    /// Whether connections to other members are encrypted.
    encrypted: bool,
    /// The clients by member, each with the address to which it connects.
    clients: Mutex<BTreeMap<MemberId, (String, Client, Channel)>>,
}

impl Members {
    pub(crate) fn new(handle: Handle, env: Env, encrypted: bool) -> Self {
        let cluster_id = Bytes::copy_from_slice(&handle.cluster_id().to_be_bytes());
        Self { handle, cluster_id, env, encrypted, clients: Mutex::default() }
    }

    fn client(&self, member: MemberId) -> Result<Client, PeerError> {
        self.known(member).map(|(client, _)| client)
    }

    /// Whether others can read what is sent to a member.
    fn is_private(&self, member: MemberId) -> bool {
        let view = self.handle.members();
        let address = view.member(member).map(|found| found.peer.address.as_str()).unwrap_or_default();
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']']);
        let is_here = |address: IpAddr| address.to_canonical().is_loopback();
        self.encrypted || host == "localhost" || host.parse().is_ok_and(is_here)
    }

    /// A client for a member's stores, and the channel that it shares with other clients.
    fn known(&self, member: MemberId) -> Result<(Client, Channel), PeerError> {
        let away = |reason: String| PeerError::Away { member, reason };
        let view = self.handle.members();
        let address = view.member(member).map(|found| found.peer.address.clone()).unwrap_or_default();
        if address.is_empty() {
            return Err(away("its address is not known".to_owned()));
        }
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|known, _| view.member(*known).is_some());
        if let Some((known, client, channel)) = clients.get(&member)
            && *known == address
        {
            return Ok((client.clone(), channel.clone()));
        }
        let channel = peer_channel(&self.env, &address).map_err(|error| away(error.to_string()))?;
        let client = StoreServiceClient::new(channel.clone())
            .max_decoding_message_size(PEER_FRAME_BYTES_MAX)
            .max_encoding_message_size(PEER_FRAME_BYTES_MAX);
        clients.insert(member, (address, client.clone(), channel.clone()));
        Ok((client, channel))
    }

    /// Waits for an answer up to a time limit.
    async fn within<T>(
        &self,
        member: MemberId,
        longest: Duration,
        call: impl Future<Output = Result<T, Status>> + Send,
    ) -> Result<T, PeerError> {
        tokio::select! {
            biased;
            answer = call => answer.map_err(|status| failed(member, &status)),
            () = self.env.clock.sleep(longest) => {
                Err(PeerError::Away { member, reason: format!("no answer in {} s", longest.as_secs()) })
            }
        }
    }
}

impl Peers for Members {
    fn group(&self) -> Group {
        let (own, view) = (self.handle.member(), self.handle.members());
        let mut others: BTreeSet<MemberId> = view.members.iter().map(|member| member.peer.member).collect();
        others.remove(&own);
        Group { own, others, voters: view.voters, leader: view.leader }
    }

    fn lines(&self, member: MemberId, from: LineCursor, following: Following) -> PeerAnswer<'_, ArrivingLines> {
        Box::pin(async move {
            let (_, channel) = self.known(member)?;
            let following = lines::follow(channel, self.cluster_id.clone(), member, from, following);
            self.within(member, ANSWER_MAX, following).await
        })
    }

    fn hold_bearer(&self, member: MemberId, job: JobId, bearer: SecretText) -> PeerAnswer<'_, ()> {
        Box::pin(async move {
            if !self.is_private(member) {
                let reason = "the controllers are not connected over TLS or loopback, so it is not sent between them";
                return Err(PeerError::Refused { member, kind: ErrorKind::Denied, reason: reason.to_owned() });
            }
            let (_, channel) = self.known(member)?;
            let held = credentials::hold(channel, self.cluster_id.clone(), job, bearer);
            self.within(member, ANSWER_MAX, held).await
        })
    }

    fn forget_bearer(&self, member: MemberId, job: JobId) -> PeerAnswer<'_, ()> {
        Box::pin(async move {
            let (_, channel) = self.known(member)?;
            self.within(member, ANSWER_MAX, credentials::forget(channel, self.cluster_id.clone(), job)).await
        })
    }

    fn model_wait(&self, member: MemberId, job: JobId) -> PeerAnswer<'_, Option<String>> {
        Box::pin(async move {
            let (_, channel) = self.known(member)?;
            self.within(member, ANSWER_MAX, lines::model_wait(channel, self.cluster_id.clone(), job)).await
        })
    }

    fn hold(&self, member: MemberId, digests: Vec<Digest>) -> PeerAnswer<'_, Vec<bool>> {
        Box::pin(async move {
            let mut client = self.client(member)?;
            let wanted = digests.len();
            let digests = digests.into_iter().map(digest_out).collect();
            let request = HoldArtifactsRequest { cluster_id: self.cluster_id.clone(), digests };
            let answer = self.within(member, ANSWER_MAX, client.hold_artifacts(request)).await?.into_inner();
            if answer.held.len() == wanted { Ok(answer.held) } else { Err(garbled(member)) }
        })
    }

    fn put(&self, member: MemberId, digest: Digest, size_bytes: u64, bytes: Outgoing) -> PeerAnswer<'_, ()> {
        Box::pin(async move {
            let mut client = self.client(member)?;
            let head = ArtifactHead { cluster_id: self.cluster_id.clone(), digest: digest_out(digest), size_bytes };
            let parts = Parts { head: Some(head), bytes };
            let longest = ANSWER_MAX + Duration::from_secs(size_bytes / BYTES_PER_SECOND_MIN);
            self.within(member, longest, client.put_artifact(parts)).await.map(|_| ())
        })
    }

    fn get(&self, member: MemberId, digest: Digest) -> PeerAnswer<'_, Arriving> {
        Box::pin(async move {
            let mut client = self.client(member)?;
            let request = GetArtifactRequest { cluster_id: self.cluster_id.clone(), digest: digest_out(digest) };
            let parts = self.within(member, ANSWER_MAX, client.get_artifact(request)).await?.into_inner();
            let env = self.env.clone();
            let chunks = stream::unfold(Some(parts), move |parts| {
                let env = env.clone();
                async move {
                    let mut parts = parts?;
                    let next = tokio::select! {
                        biased;
                        part = parts.message() => part.map_err(|status| failed(member, &status)),
                        () = env.clock.sleep(STALLED) => {
                            Err(PeerError::Away { member, reason: "the transfer stalled".to_owned() })
                        }
                    };
                    match next {
                        Ok(part) => part.map(|part| (Ok(part.chunk), Some(parts))),
                        Err(error) => Some((Err(error), None)),
                    }
                }
            });
            Ok(Box::pin(chunks) as Arriving)
        })
    }

    fn history(&self, member: MemberId, gap: Gap) -> PeerAnswer<'_, Part> {
        Box::pin(async move {
            let mut client = self.client(member)?;
            let cluster_id = self.cluster_id.clone();
            let request = FetchHistoryRequest { cluster_id, after: gap.after.0, through: gap.through.0 };
            let part = self.within(member, ANSWER_MAX, client.fetch_history(request)).await?.into_inner();
            Ok(convert::part_in(part))
        })
    }

    fn audit(&self, member: MemberId, ask: AuditAsk) -> PeerAnswer<'_, AuditPage> {
        Box::pin(async move {
            let mut client = self.client(member)?;
            let asked = (ask.after, ask.limit);
            let request = ReadAuditRequest { cluster_id: self.cluster_id.clone(), ..convert::audit_out(ask) };
            let page = self.within(member, ANSWER_MAX, client.read_audit(request)).await?.into_inner();
            convert::audit_page_in(asked, page).map_err(|_| garbled(member))
        })
    }

    fn query(&self, member: MemberId, through: EventSeq, query: Query) -> PeerAnswer<'_, QueryResult> {
        Box::pin(async move {
            let mut client = self.client(member)?;
            let question = Some(convert::query_out(query));
            let request = QueryHistoryRequest { cluster_id: self.cluster_id.clone(), through: through.0, question };
            let found = self.within(member, ANSWER_MAX, client.query_history(request)).await?.into_inner();
            convert::found_in(found).map_err(|_| garbled(member))
        })
    }
}

/// An artifact that is being sent: its head, then its bytes.
struct Parts {
    head: Option<ArtifactHead>,
    bytes: Outgoing,
}

impl Stream for Parts {
    type Item = PutArtifactRequest;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<PutArtifactRequest>> {
        if let Some(head) = self.head.take() {
            return Poll::Ready(Some(PutArtifactRequest { head: Some(head), chunk: Bytes::new() }));
        }
        let chunk = ready!(self.bytes.as_mut().poll_next(cx));
        Poll::Ready(chunk.map(|chunk| PutArtifactRequest { head: None, chunk }))
    }
}

fn failed(member: MemberId, status: &Status) -> PeerError {
    let Error { kind, message, .. } = Error::from(status);
    match kind {
        ErrorKind::Unavailable | ErrorKind::Timeout => PeerError::Away { member, reason: message },
        kind => PeerError::Refused { member, kind, reason: message },
    }
}

/// The error for a malformed answer.
fn garbled(member: MemberId) -> PeerError {
    PeerError::Refused { member, kind: ErrorKind::Internal, reason: "its answer is malformed".to_owned() }
}
