//! The other members, as the artifact store and the history see them.
//!
//! The transport is behind a trait, so that this crate opens no sockets and tests can run three services in one
//! process.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;

use atlas_audit::Filter;
use atlas_history::{Gap, JobFilter, JobKey, Part};
use atlas_types::{Attempt, Digest, ErrorKind, EventSeq, Job, JobId, MemberId, SecretText};
use bytes::Bytes;
use futures::Stream;

use crate::output::AttemptOutput;

/// The members of the group, as far as this member knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// This member.
    pub own: MemberId,
    /// All other members, including learners.
    pub others: BTreeSet<MemberId>,
    /// The voters: one set, or two during a membership change.
    pub voters: Vec<BTreeSet<MemberId>>,
    /// The leader, if known.
    pub leader: Option<MemberId>,
}

impl Group {
    /// The group of a member that is alone.
    pub fn alone(own: MemberId) -> Self {
        Self { own, others: BTreeSet::new(), voters: vec![BTreeSet::from([own])], leader: Some(own) }
    }

    /// True if these members are a majority of the voters, or of both sets during a membership change.
    pub fn is_quorum(&self, members: &BTreeSet<MemberId>) -> bool {
        !self.voters.is_empty()
            && self.voters.iter().all(|voters| 2 * voters.intersection(members).count() > voters.len())
    }

    /// The other voters.
    pub fn other_voters(&self) -> impl Iterator<Item = MemberId> + '_ {
        let votes = |member: &MemberId| self.voters.iter().any(|voters| voters.contains(member));
        self.others.iter().copied().filter(votes)
    }

    /// The other members, with the leader first, because it has all data earliest.
    pub fn others_by_use(&self) -> Vec<MemberId> {
        let mut others: Vec<MemberId> = self.others.iter().copied().collect();
        others.sort_by_key(|member| Some(*member) != self.leader);
        others
    }
}

/// Why a peer did not answer a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// It was not reached, or did not answer in time.
    #[error("member {member} does not answer: {reason}")]
    Away {
        /// The member.
        member: MemberId,
        /// The transport's error.
        reason: String,
    },
    #[error("member {member} refused: {reason}")]
    Refused {
        /// The member.
        member: MemberId,
        /// The kind of error.
        kind: ErrorKind,
        /// Its text.
        reason: String,
    },
}

impl PeerError {
    /// Why, without the member.
    pub fn reason(&self) -> &str {
        match self {
            Self::Away { reason, .. } | Self::Refused { reason, .. } => reason,
        }
    }

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
    /// The jobs with ids in a range.
    Between {
        first: JobId,
        last: JobId,
        /// The most jobs to return.
        limit: usize,
    },
    /// Jobs, newest submission first.
    List(JobFilter),
    /// The jobs that these events ended, in this order.
    EndedBy(Vec<EventSeq>),
}

/// The answer to a [`Query`].
#[derive(Debug, Clone, Default)]
pub struct QueryResult {
    /// The result of [`Query::Job`] and [`Query::EndedBy`].
    pub jobs: Vec<Arc<Job>>,
    /// The result of [`Query::Between`].
    pub ids: Vec<JobId>,
    /// The result of [`Query::List`].
    pub listed: Vec<JobKey>,
    /// How many events of a [`Query::EndedBy`] are covered. The rest must be requested again.
    pub answered: usize,
}

/// Which records are wanted, and how many.
#[derive(Debug, Clone, Default)]
pub struct AuditAsk {
    /// Only records after this number.
    pub after: u64,
    pub filter: Filter,
    /// The most records.
    pub limit: usize,
}

/// Lines of the audit.
#[derive(Debug, Clone, Default)]
pub struct AuditPage {
    /// Records as they are written, in their order.
    pub lines: Vec<String>,
    /// The number of the last record that was looked at: the next page begins after it.
    pub last: u64,
    /// Whether there is a next page.
    pub more: bool,
    /// The number of the newest record.
    pub end: u64,
}

/// A peer's answer.
pub type PeerAnswer<'a, T> = Pin<Box<dyn Future<Output = Result<T, PeerError>> + Send + 'a>>;

/// The bytes of an artifact for a peer. The stream ends early if reading fails, which the peer notices by the digest.
pub type Outgoing = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// The bytes of an artifact from a peer.
pub type Arriving = Pin<Box<dyn Stream<Item = Result<Bytes, PeerError>> + Send>>;

/// The position of a reader in a job's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineCursor {
    pub job: JobId,
    /// The attempt of the last line that was read.
    pub attempt: Attempt,
    /// The number of that line; 0 before the first line.
    pub after: u64,
}

/// What a reader of a job's log asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Following {
    /// The current lines.
    Once,
    /// All lines until the attempt ends.
    Lines,
    /// These, and pieces of models' answers as they form.
    Pieces,
}

/// Lines and pieces from the leader. The stream ends with the attempt.
pub type ArrivingLines = Pin<Box<dyn Stream<Item = Result<AttemptOutput, PeerError>> + Send + Sync>>;

/// Calls the other members. Every call has a time limit: a peer that does not answer is [`PeerError::Away`].
pub trait Peers: Send + Sync + 'static {
    /// The current group.
    fn group(&self) -> Group;

    /// Asks which artifacts a member has. The member then holds these for a while.
    fn hold(&self, member: MemberId, digests: Vec<Digest>) -> PeerAnswer<'_, Vec<bool>>;

    /// Sends an artifact. Completes when the peer has stored it durably.
    fn put(&self, member: MemberId, digest: Digest, size_bytes: u64, bytes: Outgoing) -> PeerAnswer<'_, ()>;

    /// Fetches an artifact.
    fn get(&self, member: MemberId, digest: Digest) -> PeerAnswer<'_, Arriving>;

    /// Fetches the part of a gap, from its beginning, that a member's history has.
    fn history(&self, member: MemberId, gap: Gap) -> PeerAnswer<'_, Part>;

    /// Follows the lines of a job's running attempt at the leader.
    fn lines(&self, member: MemberId, from: LineCursor, following: Following) -> PeerAnswer<'_, ArrivingLines> {
        let _ = (from, following);
        NoPeers::none(member)
    }

    /// Gives a member the credential of a job's caller, to be held until the job ends.
    fn hold_bearer(&self, member: MemberId, job: JobId, bearer: SecretText) -> PeerAnswer<'_, ()> {
        let _ = (job, bearer);
        NoPeers::none(member)
    }

    /// Tells a member that the job of a credential was refused.
    fn forget_bearer(&self, member: MemberId, job: JobId) -> PeerAnswer<'_, ()> {
        let _ = job;
        NoPeers::none(member)
    }

    /// Asks the leader which limit of a model a job's running attempt waits for.
    fn model_wait(&self, member: MemberId, job: JobId) -> PeerAnswer<'_, Option<String>> {
        let _ = job;
        NoPeers::none(member)
    }

    /// Reads records of a member's audit.
    fn audit(&self, member: MemberId, ask: AuditAsk) -> PeerAnswer<'_, AuditPage> {
        let _ = ask;
        NoPeers::none(member)
    }

    /// Queries a member's history, which must have everything up to `through`.
    fn query(&self, member: MemberId, through: EventSeq, query: Query) -> PeerAnswer<'_, QueryResult>;
}

/// The peers of a single member: none.
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
