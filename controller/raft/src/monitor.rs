//! Monitors that run beside the leader loop: they watch the disk space and the wall clock, decide when to take a
//! snapshot, and compare this member's state with the other members.
//!
//! A monitor checks periodically or receives applied entries, and reports what it finds. Monitors decide nothing about
//! commands.

pub(crate) mod digests;
pub(crate) mod snapshots;
pub(crate) mod space;
pub(crate) mod wall;
