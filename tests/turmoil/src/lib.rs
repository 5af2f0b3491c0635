//! Atlas as one seeded program on a simulated network, disk and clock, with real openraft under it.
//!
//! The log, openraft, the leader loop, the `Handle` and the transport between members are real. Time, sockets
//! (turmoil), disks that lose and tear unsynced data, and the clock of each machine are simulated. A seed determines
//! everything: the options, each delay, each fault, openraft's own timeouts. The faster layer, `atlas-sim`, models Raft
//! and runs fifty times as many seeds. In this layer nothing between a proposal and the disk is modelled.
//!
//! A run has two phases. During the faults, an `oracle` receives every entry that a member applies, every answer and
//! every execution, and each `invariant` checks them. Then the faults end: within 30 seconds one member must lead, all
//! must be equal, and every job must have ended or wait for a person. A run with too little activity is void, which
//! also counts as a failure.
//!
//! A checker that has never failed is not trusted: [`Bug`] lists deliberate bugs in the disk, the clock, the network or a
//! program as a member would see them, and a test shows that each is caught. The product has no such switches.

mod bug;
mod client;
mod cluster;
mod fault;
mod frames;
mod invariant;
mod machine;
mod member;
mod options;
mod oracle;
mod run;
mod seen;
mod wire;
mod worker;
mod worker_door;

pub use bug::Bug;
pub use fault::{FAULTS, Kind};
pub use options::Options;
pub use run::{Failure, Report, build_shortfall, first_caught, run, run_checked};
