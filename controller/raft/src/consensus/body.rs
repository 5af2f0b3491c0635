//! The encoding of Raft's own data: entry bodies in the log, snapshot headers, and messages between members.
//!
//! Protobuf, so that a later release can add fields. The messages are defined here and not in `.proto` files because only
//! this crate reads them; the peer service carries them as opaque bytes.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use openraft::EntryPayload;
use openraft::vote::RaftLeaderId;
use prost::Message;

use super::{Proposal, RaftEntry, RaftLogId, RaftMembership, RaftSnapshotMeta, RaftStoredMembership, RaftVote};
use crate::member::Member;

/// Last byte of the body of a blank Raft entry.
const KIND_BLANK: u8 = 0;
/// Last byte of the body of an Atlas entry.
pub(crate) const KIND_NORMAL: u8 = 1;
/// Last byte of the body of a membership entry.
pub(crate) const KIND_MEMBERSHIP: u8 = 2;

/// Why bytes could not be decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// The bytes are not this message.
    #[error("could not decode {what}")]
    Decode { what: &'static str, source: prost::DecodeError },
    /// A part is missing or invalid.
    #[error("{what} is missing or unknown")]
    Missing { what: &'static str },
}

/// A log id.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct Id {
    #[prost(uint64, tag = "1")]
    pub term: u64,
    #[prost(uint64, tag = "2")]
    pub node: u64,
    #[prost(uint64, tag = "3")]
    pub index: u64,
}

/// A vote.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct VoteBody {
    #[prost(uint64, tag = "1")]
    pub term: u64,
    #[prost(uint64, tag = "2")]
    pub node: u64,
    #[prost(bool, tag = "3")]
    pub committed: bool,
}

/// A set of voters.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct VoterSet {
    #[prost(uint64, repeated, tag = "1")]
    pub voters: Vec<u64>,
}

/// The members of the group: one set of voters, or two during a membership change.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct MembershipBody {
    #[prost(message, repeated, tag = "1")]
    pub configs: Vec<VoterSet>,
    /// Peer addresses of the members, by number.
    #[prost(btree_map = "uint64, string", tag = "2")]
    pub addresses: BTreeMap<u64, String>,
    /// Names and other addresses of the members. Members of the first release do not write this field.
    #[prost(btree_map = "uint64, message", tag = "3")]
    pub details: BTreeMap<u64, DetailsBody>,
}

/// The name and the addresses of a member other than its peer address.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct DetailsBody {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub worker: String,
    #[prost(string, tag = "3")]
    pub http: String,
}

/// The last entry and the membership that a snapshot covers.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct SnapshotBody {
    #[prost(message, optional, tag = "1")]
    pub last: Option<Id>,
    #[prost(message, optional, tag = "2")]
    pub membership_at: Option<Id>,
    #[prost(message, optional, tag = "3")]
    pub membership: Option<MembershipBody>,
}

/// Decodes a message. The error contains `what`.
pub(crate) fn decode<M: Message + Default>(what: &'static str, bytes: impl bytes::Buf) -> Result<M, BodyError> {
    M::decode(bytes).map_err(|source| BodyError::Decode { what, source })
}

/// Converts a Raft log id for the log.
pub(crate) fn log_id(id: RaftLogId) -> atlas_log::LogId {
    atlas_log::LogId { term: id.leader_id.term, node: id.leader_id.node_id, index: id.index }
}

/// Converts a log id of the log for Raft.
pub(crate) fn raft_log_id(id: atlas_log::LogId) -> RaftLogId {
    RaftLogId { leader_id: RaftLeaderId::new(id.term, id.node), index: id.index }
}

/// Converts a Raft vote for the log.
pub(crate) fn log_vote(vote: RaftVote) -> atlas_log::Vote {
    atlas_log::Vote { term: vote.leader_id.term, node: vote.leader_id.node_id, committed: vote.committed }
}

/// Converts a vote of the log for Raft.
pub(crate) fn raft_vote(vote: atlas_log::Vote) -> RaftVote {
    RaftVote { leader_id: RaftLeaderId::new(vote.term, vote.node), committed: vote.committed }
}

impl From<RaftLogId> for Id {
    fn from(id: RaftLogId) -> Self {
        Self { term: id.leader_id.term, node: id.leader_id.node_id, index: id.index }
    }
}

impl From<Id> for RaftLogId {
    fn from(id: Id) -> Self {
        Self { leader_id: RaftLeaderId::new(id.term, id.node), index: id.index }
    }
}

impl From<RaftVote> for VoteBody {
    fn from(vote: RaftVote) -> Self {
        Self { term: vote.leader_id.term, node: vote.leader_id.node_id, committed: vote.committed }
    }
}

impl From<VoteBody> for RaftVote {
    fn from(vote: VoteBody) -> Self {
        Self { leader_id: RaftLeaderId::new(vote.term, vote.node), committed: vote.committed }
    }
}

impl From<&RaftMembership> for MembershipBody {
    fn from(membership: &RaftMembership) -> Self {
        let configs = membership.get_joint_config().iter();
        Self {
            configs: configs.map(|voters| VoterSet { voters: voters.iter().copied().collect() }).collect(),
            addresses: membership.nodes().map(|(&id, node)| (id, node.peer.clone())).collect(),
            details: membership.nodes().map(|(&id, node)| (id, node.into())).collect(),
        }
    }
}

impl From<&Member> for DetailsBody {
    fn from(Member { name, peer: _, worker, http }: &Member) -> Self {
        Self { name: name.clone(), worker: worker.clone(), http: http.clone() }
    }
}

impl TryFrom<MembershipBody> for RaftMembership {
    type Error = BodyError;

    fn try_from(body: MembershipBody) -> Result<Self, BodyError> {
        let configs = body.configs.into_iter().map(|set| set.voters.into_iter().collect::<BTreeSet<u64>>()).collect();
        let mut details = body.details;
        let nodes = body.addresses.into_iter().map(|(id, peer)| {
            let DetailsBody { name, worker, http } = details.remove(&id).unwrap_or_default();
            (id, Member { name, peer, worker, http })
        });
        let nodes: BTreeMap<u64, Member> = nodes.collect();
        Self::new(configs, nodes).map_err(|_| BodyError::Missing { what: "a voter of the membership" })
    }
}

impl From<&RaftSnapshotMeta> for SnapshotBody {
    fn from(meta: &RaftSnapshotMeta) -> Self {
        Self {
            last: meta.last_log_id.map(Id::from),
            membership_at: meta.last_membership.log_id().map(Id::from),
            membership: Some(meta.last_membership.membership().into()),
        }
    }
}

impl TryFrom<SnapshotBody> for RaftSnapshotMeta {
    type Error = BodyError;

    fn try_from(body: SnapshotBody) -> Result<Self, BodyError> {
        let membership = match body.membership {
            // Only the initial membership may be empty.
            Some(membership) if membership.configs.is_empty() => RaftMembership::default(),
            Some(membership) => membership.try_into()?,
            None => return Err(BodyError::Missing { what: "a snapshot's membership" }),
        };
        let at = body.membership_at.map(RaftLogId::from);
        Ok(Self {
            last_log_id: body.last.map(RaftLogId::from),
            last_membership: RaftStoredMembership::new(at, membership),
        })
    }
}

/// The body of an entry, as stored in the log and sent to peers.
pub(crate) fn entry_body(entry: &RaftEntry) -> Bytes {
    match &entry.payload {
        EntryPayload::Blank => Bytes::from_static(&[KIND_BLANK]),
        EntryPayload::Normal(proposal) => proposal.body().clone(),
        EntryPayload::Membership(membership) => {
            let mut bytes = MembershipBody::from(membership).encode_to_vec();
            bytes.push(KIND_MEMBERSHIP);
            bytes.into()
        }
    }
}

/// The entry of a body.
pub(crate) fn entry(id: RaftLogId, body: Bytes) -> Result<RaftEntry, BodyError> {
    let payload = match body.last() {
        Some(&KIND_BLANK) => EntryPayload::Blank,
        Some(&KIND_NORMAL) => EntryPayload::Normal(Proposal::from_body(body)),
        Some(&KIND_MEMBERSHIP) => {
            let membership: MembershipBody = decode("a membership", &body[..body.len() - 1])?;
            EntryPayload::Membership(membership.try_into()?)
        }
        _ => return Err(BodyError::Missing { what: "the kind of an entry" }),
    };
    Ok(RaftEntry { log_id: id, payload })
}
