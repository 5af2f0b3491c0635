//! Bodies of the messages between members.

use bytes::Bytes;
use openraft::raft::{
    AppendEntriesRequest, SnapshotResponse, StreamAppendError, StreamAppendResult, TransferLeaderError,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use prost::Message;

use super::body::{self, BodyError, Id, SnapshotBody, VoteBody};
use super::{RaftLogId, RaftSnapshotMeta, RaftVote, Types};

pub(crate) use super::body::decode;

/// Asks for a vote.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct VoteAsk {
    #[prost(message, optional, tag = "1")]
    vote: Option<VoteBody>,
    #[prost(message, optional, tag = "2")]
    last: Option<Id>,
    #[prost(bool, tag = "3")]
    transfer: bool,
    /// For a pre-vote, which only asks whether the vote would be granted.
    #[prost(bool, tag = "4")]
    pre: bool,
}

impl VoteAsk {
    pub(crate) fn of(ask: &VoteRequest<Types>, pre: bool) -> Self {
        let last = ask.last_log_id.map(Id::from);
        Self { vote: Some(ask.vote.into()), last, transfer: ask.leadership_transfer, pre }
    }

    /// The question, and whether it is a pre-vote.
    pub(crate) fn into_raft(self) -> Result<(VoteRequest<Types>, bool), BodyError> {
        let mut ask = VoteRequest::new(vote(self.vote)?, self.last.map(RaftLogId::from));
        ask.leadership_transfer = self.transfer;
        Ok((ask, self.pre))
    }
}

/// Answers a vote.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct VoteAnswer {
    #[prost(message, optional, tag = "1")]
    vote: Option<VoteBody>,
    #[prost(bool, tag = "2")]
    granted: bool,
    #[prost(message, optional, tag = "3")]
    last: Option<Id>,
}

impl From<VoteResponse<Types>> for VoteAnswer {
    fn from(answer: VoteResponse<Types>) -> Self {
        let last = answer.last_log_id.map(Id::from);
        Self { vote: Some(answer.vote.into()), granted: answer.vote_granted, last }
    }
}

impl TryFrom<VoteAnswer> for VoteResponse<Types> {
    type Error = BodyError;

    fn try_from(answer: VoteAnswer) -> Result<Self, BodyError> {
        Ok(Self::new(vote(answer.vote)?, answer.last.map(RaftLogId::from), answer.granted))
    }
}

/// One entry.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct EntryBody {
    #[prost(message, optional, tag = "1")]
    id: Option<Id>,
    #[prost(bytes = "bytes", tag = "2")]
    body: Bytes,
}

/// Appends entries.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct AppendBody {
    #[prost(message, optional, tag = "1")]
    vote: Option<VoteBody>,
    #[prost(message, optional, tag = "2")]
    previous: Option<Id>,
    #[prost(message, repeated, tag = "3")]
    entries: Vec<EntryBody>,
    #[prost(message, optional, tag = "4")]
    committed: Option<Id>,
}

impl AppendBody {
    pub(crate) fn of(append: &AppendEntriesRequest<Types>) -> Self {
        let entries = append.entries.iter();
        let entries = entries.map(|entry| EntryBody { id: Some(entry.log_id.into()), body: body::entry_body(entry) });
        Self {
            vote: Some(append.vote.into()),
            previous: append.prev_log_id.map(Id::from),
            entries: entries.collect(),
            committed: append.leader_commit.map(Id::from),
        }
    }
}

impl TryFrom<AppendBody> for AppendEntriesRequest<Types> {
    type Error = BodyError;

    fn try_from(append: AppendBody) -> Result<Self, BodyError> {
        let entries = append.entries.into_iter().map(|entry| {
            let id = entry.id.ok_or(BodyError::Missing { what: "the id of an entry" })?;
            body::entry(id.into(), entry.body)
        });
        Ok(Self {
            vote: vote(append.vote)?,
            prev_log_id: append.previous.map(RaftLogId::from),
            entries: entries.collect::<Result<_, _>>()?,
            leader_commit: append.committed.map(RaftLogId::from),
        })
    }
}

/// Answers an append.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct AppendAnswer {
    #[prost(enumeration = "AppendResult", tag = "1")]
    result: i32,
    /// With `Matching`: the last log id at which the logs agree, or none. With `Conflict`: the log id at which they
    /// differ.
    #[prost(message, optional, tag = "2")]
    id: Option<Id>,
    #[prost(message, optional, tag = "3")]
    vote: Option<VoteBody>,
}

/// How an append ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
enum AppendResult {
    /// Never written.
    Unspecified = 0,
    /// The logs agree.
    Matching = 1,
    /// The logs differ at `id`.
    Conflict = 2,
    /// The answering member has a higher vote.
    HigherVote = 3,
}

impl From<StreamAppendResult<Types>> for AppendAnswer {
    fn from(result: StreamAppendResult<Types>) -> Self {
        let (result, id, vote) = match result {
            Ok(id) => (AppendResult::Matching, id.map(Id::from), None),
            Err(StreamAppendError::Conflict(id)) => (AppendResult::Conflict, Some(id.into()), None),
            Err(StreamAppendError::HigherVote(vote)) => (AppendResult::HigherVote, None, Some(vote.into())),
        };
        Self { result: result.into(), id, vote }
    }
}

impl TryFrom<AppendAnswer> for StreamAppendResult<Types> {
    type Error = BodyError;

    fn try_from(answer: AppendAnswer) -> Result<Self, BodyError> {
        let id = answer.id.map(RaftLogId::from);
        match answer.result() {
            AppendResult::Matching => Ok(Ok(id)),
            AppendResult::Conflict => {
                Ok(Err(StreamAppendError::Conflict(id.ok_or(BodyError::Missing { what: "the conflicting id" })?)))
            }
            AppendResult::HigherVote => Ok(Err(StreamAppendError::HigherVote(vote(answer.vote)?))),
            AppendResult::Unspecified => Err(BodyError::Missing { what: "the result of an append" }),
        }
    }
}

/// Opens a snapshot's transfer.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct SnapshotHead {
    #[prost(message, optional, tag = "1")]
    vote: Option<VoteBody>,
    #[prost(message, optional, tag = "2")]
    meta: Option<SnapshotBody>,
    /// The number of bytes in the snapshot.
    #[prost(uint64, optional, tag = "3")]
    bytes: Option<u64>,
}

impl SnapshotHead {
    pub(crate) fn of(vote: RaftVote, meta: &RaftSnapshotMeta, bytes: u64) -> Self {
        Self { vote: Some(vote.into()), meta: Some(meta.into()), bytes: Some(bytes) }
    }

    /// The size of the snapshot in bytes, if the sender announced it.
    pub(crate) fn announced(&self) -> Option<u64> {
        self.bytes
    }

    pub(crate) fn into_raft(self) -> Result<(RaftVote, RaftSnapshotMeta), BodyError> {
        let meta = self.meta.ok_or(BodyError::Missing { what: "what a snapshot covers" })?;
        Ok((vote(self.vote)?, meta.try_into()?))
    }
}

/// Answers a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct SnapshotAnswer {
    #[prost(message, optional, tag = "1")]
    vote: Option<VoteBody>,
}

impl From<SnapshotResponse<Types>> for SnapshotAnswer {
    fn from(answer: SnapshotResponse<Types>) -> Self {
        Self { vote: Some(answer.vote.into()) }
    }
}

impl TryFrom<SnapshotAnswer> for SnapshotResponse<Types> {
    type Error = BodyError;

    fn try_from(answer: SnapshotAnswer) -> Result<Self, BodyError> {
        Ok(Self::new(vote(answer.vote)?))
    }
}

/// Hands leadership over.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct TransferBody {
    #[prost(message, optional, tag = "1")]
    from: Option<VoteBody>,
    #[prost(uint64, tag = "2")]
    to: u64,
    #[prost(message, optional, tag = "3")]
    last: Option<Id>,
}

impl TransferBody {
    pub(crate) fn of(transfer: &TransferLeaderRequest<Types>) -> Self {
        let last = transfer.last_log_id().copied().map(Id::from);
        Self { from: Some((*transfer.from_leader()).into()), to: *transfer.to_node_id(), last }
    }
}

impl TryFrom<TransferBody> for TransferLeaderRequest<Types> {
    type Error = BodyError;

    fn try_from(transfer: TransferBody) -> Result<Self, BodyError> {
        Ok(Self::new(vote(transfer.from)?, transfer.to, transfer.last.map(RaftLogId::from)))
    }
}

/// Answers a transfer. No field is set if the member accepted it.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct TransferAnswer {
    #[prost(message, optional, tag = "1")]
    vote_expected: Option<VoteBody>,
    #[prost(message, optional, tag = "2")]
    vote_actual: Option<VoteBody>,
    #[prost(bool, tag = "3")]
    not_flushed: bool,
    #[prost(message, optional, tag = "4")]
    log_expected: Option<Id>,
    #[prost(message, optional, tag = "5")]
    log_actual: Option<Id>,
}

impl From<TransferLeaderResponse<Types>> for TransferAnswer {
    fn from(answer: TransferLeaderResponse<Types>) -> Self {
        match answer {
            Ok(()) => Self::default(),
            Err(TransferLeaderError::VoteChanged { expected, actual }) => {
                Self { vote_expected: Some(expected.into()), vote_actual: Some(actual.into()), ..Self::default() }
            }
            Err(TransferLeaderError::LogNotFlushed { expected, actual }) => Self {
                not_flushed: true,
                log_expected: expected.map(Id::from),
                log_actual: actual.map(Id::from),
                ..Self::default()
            },
        }
    }
}

impl TryFrom<TransferAnswer> for TransferLeaderResponse<Types> {
    type Error = BodyError;

    fn try_from(answer: TransferAnswer) -> Result<Self, BodyError> {
        if answer.not_flushed {
            let (expected, actual) = (answer.log_expected.map(Into::into), answer.log_actual.map(Into::into));
            return Ok(Err(TransferLeaderError::LogNotFlushed { expected, actual }));
        }
        match (answer.vote_expected, answer.vote_actual) {
            (None, None) => Ok(Ok(())),
            (expected, actual) => {
                Ok(Err(TransferLeaderError::VoteChanged { expected: vote(expected)?, actual: vote(actual)? }))
            }
        }
    }
}

fn vote(body: Option<VoteBody>) -> Result<RaftVote, BodyError> {
    body.map(RaftVote::from).ok_or(BodyError::Missing { what: "the vote" })
}
