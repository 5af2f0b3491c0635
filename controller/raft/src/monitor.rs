//! What a member watches beside the leader loop: room on its disk, its wall clock, when to take a snapshot, and whether it agrees
//! with the others.
//!
//! A monitor looks from time to time or is told what was applied, and says what it found. None of them decides about a command.

pub(crate) mod digests;
pub(crate) mod snapshots;
pub(crate) mod space;
pub(crate) mod wall;
