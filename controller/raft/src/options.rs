//! What a member needs to start.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use atlas_types::{EventSeq, Level, MemberId};

use crate::member::Member;
use crate::monitor::space::SpaceLimits;

/// What a member needs to start.
#[derive(Debug, Clone)]
pub struct Options {
    /// Log and snapshots live in `raft/` below it.
    pub data_dir: PathBuf,
    /// This member's number in the group.
    pub member: MemberId,
    /// The cluster; none takes that of the log, and draws one for a new log.
    pub cluster_id: Option<u128>,
    /// What this member is called and where it is reached.
    pub own: Member,
    /// True for a member that a group has taken in: it never forms one of its own, its leader will reach it.
    pub joins: bool,
    /// The feature level that this member says it knows: that of the program, or a lower one, which its group then does not leave.
    pub level: Level,
    /// The members that form a new group. Read on the very first start only; empty means this member alone.
    pub members: BTreeMap<MemberId, Member>,
    /// Sizes of the log.
    pub log: atlas_log::Limits,
    /// Requests that may wait for the leader loop before it answers [`crate::ProposeError::Overloaded`].
    pub queue_max: usize,
    /// Applied batches that a subscriber may lag behind.
    pub subscription_max: usize,
    /// How long a worker's session lives after its last renewal.
    pub session_ttl: Duration,
    /// How nodes are chosen.
    pub strategy: atlas_duty::Strategy,
    /// True when this member keeps a history: then snapshots wait for [`crate::Handle::history_synced`].
    pub history: bool,
    /// What the history has already: replayed batches up to here are not kept for [`crate::Handle::subscribe_from_start`].
    pub history_from: EventSeq,
    /// Room on the disk that the member wants.
    pub space: SpaceLimits,
    /// After so many entries members compare the digests of their states; 0 is never.
    pub digest_every: u64,
    /// A node that is down for so long, holds no lease and is not cordoned is forgotten; none is never.
    pub forget_nodes_after: Option<Duration>,
    /// An agent version that was retired so long ago and of which no job is left that has not ended is forgotten; none is never.
    pub retired_agents_keep: Option<Duration>,
    /// A snapshot is due after so much log, or twice the last snapshot if that is more; as much log is kept.
    pub snapshot_log_bytes: u64,
    /// How often it is looked whether a snapshot is due.
    pub snapshot_look_every: Duration,
}

impl Options {
    /// A member alone in its group, with the documented defaults.
    pub fn new(data_dir: PathBuf) -> Self {
        Self {
            data_dir,
            member: MemberId(1),
            cluster_id: None,
            own: Member::default(),
            joins: false,
            level: Level::CURRENT,
            members: BTreeMap::new(),
            log: atlas_log::Limits::default(),
            queue_max: 16_384,
            subscription_max: 1_024,
            session_ttl: Duration::from_secs(10),
            strategy: atlas_duty::Strategy::BinPack,
            history: true,
            history_from: EventSeq(0),
            space: SpaceLimits { ballast_bytes: 0, reserve_bytes: 32 << 20 },
            digest_every: 1 << 16,
            forget_nodes_after: None,
            retired_agents_keep: None,
            snapshot_log_bytes: 256 << 20,
            snapshot_look_every: Duration::from_secs(5),
        }
    }
}
