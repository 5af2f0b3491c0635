//! Errors for callers of a [`crate::Handle`].

use std::sync::Arc;

use atlas_state::ImageError;

use crate::member::Peer;

/// Whether this member leads, as far as it knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// This member leads and accepts proposals.
    Leader {
        /// Its term.
        term: u64,
    },
    /// This member follows, or is not yet ready to lead.
    Follower {
        /// The leader, if known.
        leader: Option<Peer>,
    },
    /// This member has stopped for good. The process must exit.
    Stopped {
        /// Why.
        reason: Arc<str>,
    },
}

/// The result of a proposal that was not applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// Nothing was written. The proposal can safely be repeated at the leader.
    #[error("this member does not lead")]
    NotLeader {
        /// The leader, if known.
        leader: Option<Peer>,
    },
    /// The proposal may or may not be applied. Repeat it with the same request id to learn the outcome.
    #[error("leadership changed during the proposal; its outcome is unknown")]
    Unknown,
    /// Too many proposals wait already. Nothing was written.
    #[error("too many proposals are waiting")]
    Overloaded,
    /// The leader's disk is nearly full; nothing was written.
    #[error("the leader's disk is nearly full")]
    NoSpace,
    /// The member has stopped.
    #[error("this member has stopped: {reason}")]
    Stopped {
        /// Why.
        reason: Arc<str>,
    },
}

/// Why a linearizable read, or the renewal of a session, was not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Only the leader can answer.
    #[error("this member does not lead")]
    NotLeader {
        /// The leader, if known.
        leader: Option<Peer>,
    },
    /// Too many reads wait already.
    #[error("too many reads are waiting")]
    Overloaded,
    /// The session to be renewed has ended. The worker must register again.
    #[error("the session has ended")]
    NoSession,
    /// The member has stopped.
    #[error("this member has stopped: {reason}")]
    Stopped {
        /// Why.
        reason: Arc<str>,
    },
}

/// Why a member cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The log cannot be opened.
    #[error("could not open the log")]
    Log(#[source] atlas_log::LogError),
    /// The snapshot cannot be read.
    #[error("could not read the snapshot")]
    Snapshot(#[source] std::io::Error),
    /// The snapshot is undamaged, but its state breaks an invariant.
    #[error(
        "the snapshot breaks the invariant {name}; let this controller join again with an empty directory, or if no controller starts, restore the last backup: atlasctl operator snapshot restore"
    )]
    Invariant {
        /// Which one.
        name: &'static str,
        /// What was found.
        source: std::io::Error,
    },
    /// Raft does not start with the stored log and snapshot.
    #[error("could not start raft: {reason}")]
    Raft {
        /// Why.
        reason: String,
    },
    /// The thread or its runtime cannot be made.
    #[error("could not start the thread of the leader loop")]
    Thread(#[source] std::io::Error),
}

impl StartError {
    /// Why the snapshot cannot be loaded.
    pub(crate) fn snapshot(error: std::io::Error) -> Self {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        match inner {
            Some(ImageError::Violation(violation)) => Self::Invariant { name: violation.name, source: error },
            _ => Self::Snapshot(error),
        }
    }

    /// True if the log or the snapshot is damaged on disk.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Log(error) => {
                matches!(error, atlas_log::LogError::Damaged { .. } | atlas_log::LogError::Short { .. })
            }
            Self::Snapshot(error) => error.kind() == std::io::ErrorKind::InvalidData,
            Self::Invariant { .. } => true,
            Self::Raft { .. } | Self::Thread(_) => false,
        }
    }
}
