//! openraft on our own log, and the leader loop.
//!
//! [`start`] gives a [`Handle`] and a [`Service`]. Behind them one thread runs Raft's core and the leader loop on one runtime,
//! so that a commit wakes no other thread. Nothing outside this crate names an openraft type.

mod batches;
mod channel;
mod consensus;
mod door;
mod error;
mod forward;
mod handle;
mod identity;
mod leader;
mod local;
mod machine;
mod member;
mod membership;
mod monitor;
pub mod offline;
mod options;
mod start;
#[cfg(test)]
mod tests;

pub use batches::{AppliedBatch, Subscription};
pub use channel::peer_channel;
pub use door::{Claim, PeerDoor, Refusal, RefusalWatch, Sender};
pub use error::{Leadership, ProposeError, ReadError, StartError};
pub use handle::Handle;
pub use identity::Identity;
pub use local::Answers;
pub use member::{Member, Peer};
pub use membership::{ChangeError, MemberView, MembersView, Role, Status, Upkeep};
pub use monitor::digests::Agreement;
pub use monitor::space::{Disk, Room, SpaceLimits, make_room};
pub use monitor::wall::ClockDoubt;
pub use options::Options;
pub use start::{Service, start, start_here};
