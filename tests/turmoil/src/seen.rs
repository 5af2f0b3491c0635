//! Observations from outside the programs, in the order in which they happened.

use std::sync::Arc;
use std::time::Duration;

use atlas_raft::AppliedBatch;
use atlas_state::State;
use atlas_types::{EventRecord, FencingToken, JobId, MemberId, NodeEpoch, NodeId, Seq};
use bytes::Bytes;

use crate::wire::{Answer, Ask};

/// One observation.
#[derive(Debug, Clone)]
pub(crate) enum Seen {
    /// A member applied an entry.
    Applied { member: usize, batch: Arc<AppliedBatch> },
    /// The first member to apply an entry reported this event.
    Event { event: EventRecord, state: State },
    /// Entries before this state were applied by members that stopped before they were observed.
    Missed { state: State },
    /// A member has restarted with this state.
    Up { member: usize, state: State },
    /// A member is down: its process was killed, or it ended by itself for a reason.
    Down { member: usize },
    /// A member reports that it cannot continue.
    Stopped { member: usize, reason: Arc<str> },
    /// A member could not start with the content of its disk.
    NoStart { member: usize, error: String },
    /// A member became leader.
    Leads { member: usize, term: u64 },
    /// The disk of a member failed a sync.
    SyncFailed { member: usize },
    /// The disk of a member is full.
    DiskFull { member: usize },
    /// The disk of a member has space again.
    DiskRoom { member: usize },
    /// A worker's session was renewed by a frame sent at this time.
    Renewed { node: NodeId, sent: Duration },
    /// At rest, the voters that a member knows, and the correct ones.
    Voters { member: usize, voters: Vec<MemberId>, right: Vec<MemberId> },
    /// A client received its answer.
    Answered { client: usize, ask: Ask, called: Duration, answer: Answer },
    /// A client stopped waiting, or was told that the outcome is unknown.
    Unanswered { client: usize, ask: Ask, called: Duration },
    /// A worker's process was welcomed with these leases, from the state with this many entries.
    Welcomed { node: NodeId, epoch: NodeEpoch, seq: Seq, leases: Vec<FencingToken> },
    /// How many disks held the entry of this index when the first member had applied it.
    OnDisks { index: u64, disks: usize },
    /// Synced bytes on a member's disk were damaged.
    Damaged { member: usize },
    /// A machine got a new disk and a new member.
    Replaced { member: usize },
    /// At rest, the entries in a member's log, by index.
    Logged { member: usize, entries: Vec<(u64, Bytes)> },
    /// A child starts to run an attempt.
    ChildStarted { node: NodeId, job: JobId, token: FencingToken },
    /// A child has ended.
    ChildEnded { token: FencingToken },
    /// A worker's process was killed, and its children with it.
    WorkerDown { node: NodeId },
    /// All faults are over.
    FaultsOver,
}
