//! Join tokens, with which controllers and workers join a cluster.

use crate::{ClusterTime, Digest};

/// Who can join with a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// A controller, which becomes a member.
    Controller,
    Worker,
}

impl JoinKind {
    /// The word that people read.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Controller => "controller",
            Self::Worker => "worker",
        }
    }
}

/// A join token as the state keeps it: never the token itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinToken {
    /// SHA-256 of the token.
    pub hash: Digest,
    /// Whom it lets in.
    pub kind: JoinKind,
    /// When it ceases to.
    pub expires: ClusterTime,
    /// How often it can still be used.
    pub uses: u32,
}
