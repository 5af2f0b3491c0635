//! Implements openraft's traits on our log, snapshots and transport. Of the other modules, only the leader loop,
//! membership and the peer door use openraft.

pub(crate) mod body;
mod deadline;
pub(crate) mod log_store;
pub(crate) mod machine;
pub(crate) mod message;
pub(crate) mod network;
pub(crate) mod runtime;
pub(crate) mod snapshot;
#[cfg(test)]
mod tests;
pub(crate) mod unhurried;

use std::fmt;
use std::time::Duration;

use atlas_types::MemberId;
use bytes::Bytes;
use openraft::alias;

use crate::member::{Member, Peer};

/// No other member can lead earlier than this after a quorum has last answered the leader.
pub(crate) const ELECTION_MIN: Duration = Duration::from_millis(200);

/// The leader's lease: no member votes for another one earlier than this after it has last heard from the leader. The
/// election timeout comes after it, and is between [`ELECTION_MIN`] and this.
pub(crate) const ELECTION_MAX: Duration = Duration::from_millis(250);

openraft::declare_raft_types!(
    /// Our types in openraft's places.
    pub(crate) Types:
        D = Proposal,
        R = Reply,
        Node = Member,
        AsyncRuntime = runtime::Runtime,
);

pub(crate) type RaftLogId = alias::LogIdOf<Types>;
pub(crate) type LeaderId = alias::LeaderIdOf<Types>;
pub(crate) type RaftVote = alias::VoteOf<Types>;
pub(crate) type RaftEntry = alias::EntryOf<Types>;
pub(crate) type RaftMembership = openraft::Membership<u64, Member>;
pub(crate) type RaftStoredMembership = alias::StoredMembershipOf<Types>;

impl Peer {
    /// The member's name and addresses in `membership`; all empty if it is not a member.
    pub(crate) fn of(member: MemberId, membership: &RaftMembership) -> Self {
        Self::new(member, membership.get_node(&member.0).cloned().unwrap_or_default())
    }
}
pub(crate) type RaftSnapshotMeta = alias::SnapshotMetaOf<Types>;

/// An Atlas entry as stored in the log: the bytes of `atlas.state.v1`, then one byte that marks it as an Atlas entry
/// and not one of Raft's own.
///
/// The byte comes last so that neither proposing nor reading copies the entry.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Proposal(Bytes);

impl Proposal {
    /// Wraps an encoded entry.
    pub(crate) fn new(mut entry: Vec<u8>) -> Self {
        entry.push(body::KIND_NORMAL);
        Self(entry.into())
    }

    fn from_body(body: Bytes) -> Self {
        debug_assert_eq!(body.last(), Some(&body::KIND_NORMAL));
        Self(body)
    }

    fn body(&self) -> &Bytes {
        &self.0
    }

    /// The encoded entry.
    pub(crate) fn entry(&self) -> &[u8] {
        self.0.split_last().map_or(&[], |(_, entry)| entry)
    }
}

impl fmt::Debug for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// The answer to the proposer of an applied entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// One of Raft's own entries.
    Raft,
    /// The Atlas entry changed nothing, because it was planned on another state.
    Stale,
    /// The Atlas entry was applied.
    Applied,
}
