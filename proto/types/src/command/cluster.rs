//! Commands about the cluster: its members, history and configuration.

use crate::{ClusterConfig, Digest, EventSeq, JoinKind, MemberId, Micros, Seq};

/// A member's history has everything up to an event, synced to disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkAck {
    pub member: MemberId,
    /// The last event it has.
    pub event_seq: EventSeq,
}

/// Drops ended jobs up to an event; refused beyond what a majority of the named voters has acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PruneJobs {
    /// The voters of the group when this was planned.
    pub voters: Vec<MemberId>,
    /// Jobs that ended at or before this event go.
    pub event_seq: EventSeq,
    /// At most so many in one entry.
    pub limit: u32,
}

/// Replaces the replicated configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigureCluster {
    /// The new configuration, whole.
    pub config: ClusterConfig,
}

/// A member's digest of its whole state. It changes nothing: every member compares it with its own (B.40).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportDigest {
    pub member: MemberId,
    /// Entries applied to the state that it is of.
    pub seq: Seq,
    /// BLAKE3 over the state as a snapshot has it.
    pub digest: [u8; 32],
}

/// Makes a join token known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreateJoinToken {
    /// SHA-256 of the token; the token itself is nowhere in the log.
    pub hash: Digest,
    /// Whom it lets in.
    pub kind: JoinKind,
    /// How long it holds, an hour at most.
    pub ttl: Micros,
    /// How often it can be used.
    pub uses: u32,
    /// What the token was made of besides its caller's name for the request, which the log does not have; none if it was drawn.
    pub salt: Option<u128>,
}

/// Revokes a join token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RevokeJoinToken {
    /// SHA-256 of the token.
    pub hash: Digest,
}

/// A controller joins with a token, which is used up by it, and gets a number that no member had before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinMember {
    /// SHA-256 of its token.
    pub hash: Digest,
    /// The highest number in the group's membership: the members that formed the group never joined.
    pub above: MemberId,
}
