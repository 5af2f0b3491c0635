//! Artifacts: packages and large payloads by digest, durable on a majority of the controllers; and the other controllers, as one controller
//! asks them. How they are reached is behind the trait [`Peers`]: this crate opens no sockets.

mod artifacts;
mod output;
mod peers;

pub use artifacts::{ArtifactError, ArtifactOptions, Artifacts, Receiver, Sender, digest_of, hash};
pub use output::{AttemptOutput, Line, Pieces};
pub use peers::{
    Arriving, ArrivingLines, AuditAsk, AuditPage, Following, Group, LineCursor, NoPeers, Outgoing, PeerAnswer,
    PeerError, Peers, Query, QueryResult,
};
