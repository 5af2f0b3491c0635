//! Operator commands on backups and on the files of a stopped controller, without a network.
//!
//! The one crate besides `atlas-dev` through which the command line links the controller's side, as a library: a damaged or
//! leaderless cluster answers no requests. [`recover`] and [`restore`] are the controller's own; [`log`] prints a member's log.

pub mod log;

pub use atlas_raft::offline::{About as MemberAbout, Tail};
pub use atlas_recovery::archive::{About, ArchiveContents};
pub use atlas_recovery::generation::TOKENS_SKIPPED;
pub use atlas_recovery::recover::{self, Plan};
pub use atlas_recovery::restore::{self, inspect};
pub use atlas_recovery::{ArchiveError, RecoveryError};
