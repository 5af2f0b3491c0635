//! The other members as the stores see them.
//!
//! The transport is behind a trait, so that this crate opens no socket and tests put three services into one process.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;

use atlas_history::{Gap, JobFilter, Listed, Part};
use atlas_types::{Attempt, Digest, ErrorKind, EventSeq, Job, JobId, MemberId};
use bytes::Bytes;
use futures::Stream;

use crate::streams::Line;

/// Who belongs to the group, as far as this member knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// This member.
    pub own: MemberId,
    /// All others, learners too.
    pub others: BTreeSet<MemberId>,
    /// Who votes: one set, and two while the group changes.
    pub voters: Vec<BTreeSet<MemberId>>,
    /// Who leads, if that is known.
    pub leader: Option<MemberId>,
}

impl Group {
    /// The group of a member that is alone.
    pub fn alone(own: MemberId) -> Self {
        Self { own, others: BTreeSet::new(), voters: vec![BTreeSet::from([own])], leader: Some(own) }
    }

    /// Whether these are a majority of the voters, of each set while the group changes.
    pub fn is_quorum(&self, members: &BTreeSet<MemberId>) -> bool {
        !self.voters.is_empty()
            && self.voters.iter().all(|voters| 2 * voters.intersection(members).count() > voters.len())
    }

    /// The others that vote.
    pub fn other_voters(&self) -> impl Iterator<Item = MemberId> + '_ {
        let votes = |member: &MemberId| self.voters.iter().any(|voters| voters.contains(member));
        self.others.iter().copied().filter(votes)
    }

    /// The others, the leader first: it has everything soonest.
    pub fn others_by_use(&self) -> Vec<MemberId> {
        let mut others: Vec<MemberId> = self.others.iter().copied().collect();
        others.sort_by_key(|member| Some(*member) != self.leader);
        others
    }
}

/// Why a peer gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// It was not reached, or did not answer in time.
    #[error("member {member} does not answer: {reason}")]
    Away {
        /// Who.
        member: MemberId,
        /// What the transport says.
        reason: String,
    },
    #[error("member {member} refused: {reason}")]
    Refused {
        /// Who.
        member: MemberId,
        /// What kind of refusal.
        kind: ErrorKind,
        /// Its words.
        reason: String,
    },
}

impl PeerError {
    /// True if the member does not have the requested data.
    pub fn is_lack(&self) -> bool {
        matches!(self, Self::Refused { kind: ErrorKind::NotFound | ErrorKind::Gone, .. })
    }
}

/// A question about ended jobs.
#[derive(Debug, Clone)]
pub enum Query {
    /// One job.
    Job(JobId),
    /// The jobs whose ids lie in a range.
    Between {
        first: JobId,
        last: JobId,
        /// At most so many.
        limit: usize,
    },
    /// Jobs, newest submission first.
    List(JobFilter),
    /// The jobs that events ended, in this order.
    EndedBy(Vec<EventSeq>),
}

/// The answer to a [`Query`].
#[derive(Debug, Clone, Default)]
pub struct QueryResult {
    /// Of [`Query::Job`] and [`Query::EndedBy`].
    pub jobs: Vec<Arc<Job>>,
    /// Of [`Query::Between`].
    pub ids: Vec<JobId>,
    /// Of [`Query::List`].
    pub listed: Vec<Listed>,
    /// How many events of a [`Query::EndedBy`] this answers: the rest must be requested again.
    pub answered: usize,
}

/// A peer's answer.
pub type PeerAnswer<'a, T> = Pin<Box<dyn Future<Output = Result<T, PeerError>> + Send + 'a>>;

/// The bytes of an artifact on their way to a peer. Ends early if they cannot be read: the peer checks the digest.
pub type Outgoing = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// The bytes of an artifact on their way from a peer.
pub type Arriving = Pin<Box<dyn Stream<Item = Result<Bytes, PeerError>> + Send>>;

/// Where a reader of a job's lines is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineCursor {
    pub job: JobId,
    /// The attempt of the last line that was read.
    pub attempt: Attempt,
    /// Its number; 0 before the first.
    pub after: u64,
}

/// Lines on their way from the leader, some at a time. Ends with the attempt.
pub type ArrivingLines = Pin<Box<dyn Stream<Item = Result<Vec<Line>, PeerError>> + Send + Sync>>;

/// Reaches the other members. Every call ends on its own: a peer that stalls is [`PeerError::Away`].
pub trait Peers: Send + Sync + 'static {
    /// Who belongs to the group now.
    fn group(&self) -> Group;

    /// Asks which artifacts a member has, and it keeps those for a while.
    fn hold(&self, member: MemberId, digests: Vec<Digest>) -> PeerAnswer<'_, Vec<bool>>;

    /// Sends an artifact; complete when it is durable there.
    fn put(&self, member: MemberId, digest: Digest, size_bytes: u64, bytes: Outgoing) -> PeerAnswer<'_, ()>;

    /// Fetches an artifact.
    fn get(&self, member: MemberId, digest: Digest) -> PeerAnswer<'_, Arriving>;

    /// Fetches what a member's history has of a gap, from its front.
    fn history(&self, member: MemberId, gap: Gap) -> PeerAnswer<'_, Part>;

    /// Follows the lines of a job's running attempt at the member that leads; with `once` only those that are there.
    fn lines(&self, member: MemberId, from: LineCursor, once: bool) -> PeerAnswer<'_, ArrivingLines> {
        let _ = (from, once);
        NoPeers::none(member)
    }

    /// Asks a member's history, which must have everything up to `through`.
    fn query(&self, member: MemberId, through: EventSeq, query: Query) -> PeerAnswer<'_, QueryResult>;
}

/// The peers of a member that is alone: none.
#[derive(Debug, Clone, Copy)]
pub struct NoPeers(pub MemberId);

impl NoPeers {
    fn none<T: Send + 'static>(member: MemberId) -> PeerAnswer<'static, T> {
        Box::pin(std::future::ready(Err(PeerError::Away { member, reason: "there are no other members".to_owned() })))
    }
}

impl Peers for NoPeers {
    fn group(&self) -> Group {
        Group::alone(self.0)
    }

    fn hold(&self, member: MemberId, _: Vec<Digest>) -> PeerAnswer<'_, Vec<bool>> {
        Self::none(member)
    }

    fn put(&self, member: MemberId, _: Digest, _: u64, _: Outgoing) -> PeerAnswer<'_, ()> {
        Self::none(member)
    }

    fn get(&self, member: MemberId, _: Digest) -> PeerAnswer<'_, Arriving> {
        Self::none(member)
    }

    fn history(&self, member: MemberId, _: Gap) -> PeerAnswer<'_, Part> {
        Self::none(member)
    }

    fn query(&self, member: MemberId, _: EventSeq, _: Query) -> PeerAnswer<'_, QueryResult> {
        Self::none(member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(members: &[u64]) -> BTreeSet<MemberId> {
        members.iter().copied().map(MemberId).collect()
    }

    #[test]
    fn while_the_group_changes_both_majorities_are_needed() {
        let voters = vec![set(&[1, 2, 3]), set(&[1, 4, 5])];
        let group = Group { own: MemberId(1), others: set(&[2, 3, 4, 5, 6]), voters, leader: Some(MemberId(4)) };
        assert!(!group.is_quorum(&set(&[1, 2, 3])));
        assert!(!group.is_quorum(&set(&[1, 4, 6])));
        assert!(group.is_quorum(&set(&[1, 2, 4])));
        assert!(group.other_voters().eq([2, 3, 4, 5].map(MemberId)), "a learner does not vote");
        assert_eq!(group.others_by_use()[0], MemberId(4));
    }

    #[test]
    fn a_member_that_is_alone_is_its_own_majority() {
        let group = Group::alone(MemberId(7));
        assert!(group.is_quorum(&set(&[7])));
        assert!(!group.is_quorum(&set(&[])));
    }
}
