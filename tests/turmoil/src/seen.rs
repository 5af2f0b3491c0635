//! Observations from outside the programs, in the order in which they happened.

use std::sync::Arc;
use std::time::Duration;

use atlas_raft::AppliedBatch;
use atlas_state::State;
use atlas_types::{EventRecord, FencingToken, JobId, MemberId, NodeEpoch, NodeId, Seq};
use bytes::Bytes;

use crate::wire::{Answer, Ask};

/// One thing that was seen.
#[derive(Debug, Clone)]
pub(crate) enum Seen {
    /// A member applied an entry.
    Applied { member: usize, batch: Arc<AppliedBatch> },
    /// The first member to apply it told of this event.
    Event { event: EventRecord, state: State },
    /// Entries before this state were applied by members that were gone before anybody could look at them.
    Missed { state: State },
    /// A member is up again with this state.
    Up { member: usize, state: State },
    /// A member is down: its process was killed, or it ended by itself for a reason.
    Down { member: usize },
    /// A member says that it cannot go on.
    Stopped { member: usize, reason: Arc<str> },
    /// A member could not start on what its disk holds.
    NoStart { member: usize, error: String },
    /// A member came to lead.
    Leads { member: usize, term: u64 },
    /// The disk of a member failed a sync.
    SyncFailed { member: usize },
    /// Nothing more fits on the disk of a member.
    DiskFull { member: usize },
    /// There is room again.
    DiskRoom { member: usize },
    /// A worker's session was renewed, by what it sent then.
    Renewed { node: NodeId, sent: Duration },
    /// At rest a member knows of these voters, and these are right.
    Voters { member: usize, voters: Vec<MemberId>, right: Vec<MemberId> },
    /// A client has its answer.
    Answered { client: usize, ask: Ask, called: Duration, answer: Answer },
    /// A client gave up waiting, or was told that it is unknown.
    Unanswered { client: usize, ask: Ask, called: Duration },
    /// A worker's process was welcomed with these leases, from the state after so many entries.
    Welcomed { node: NodeId, epoch: NodeEpoch, seq: Seq, leases: Vec<FencingToken> },
    /// When the first member had applied the entry of this index, so many disks held it.
    OnDisks { index: u64, disks: usize },
    /// Bytes of a member's disk that it had synced are not what they were.
    Damaged { member: usize },
    /// A machine with a new disk, and a new member on it.
    Replaced { member: usize },
    /// At rest the log of a member holds these entries, by index.
    Logged { member: usize, entries: Vec<(u64, Bytes)> },
    /// A child begins to run an attempt.
    ChildStarted { node: NodeId, job: JobId, token: FencingToken },
    /// A child has ended.
    ChildEnded { token: FencingToken },
    /// A worker's process was killed, and its children with it.
    WorkerDown { node: NodeId },
    /// All faults are over.
    FaultsOver,
}
