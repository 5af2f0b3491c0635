//! The options for starting a member.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use atlas_types::{EventSeq, Level, MemberId};

use crate::member::Member;
use crate::monitor::space::SpaceLimits;

/// The options for starting a member.
#[derive(Debug, Clone)]
pub struct Options {
    /// The data directory. The log and snapshots are in its subdirectory `raft`.
    pub data_dir: PathBuf,
    /// This member's number in the group.
    pub member: MemberId,
    /// The cluster. None uses the log's cluster, or a random id for a new log.
    pub cluster_id: Option<u128>,
    /// This member's name and addresses.
    pub own: Member,
    /// True for a member that joined a group. It never forms a group of its own, but waits for the leader to contact
    /// it.
    pub joins: bool,
    /// The feature level that this member reports: that of the program or a lower one. Its group does not exceed it.
    pub level: Level,
    /// The members that form a new group. Read on the very first start only; empty means this member alone.
    pub members: BTreeMap<MemberId, Member>,
    /// Sizes of the log.
    pub log: atlas_log::Limits,
    /// Requests that may wait for the leader loop before it answers [`crate::ProposeError::Overloaded`].
    pub queue_max: usize,
    /// The most applied batches that a subscriber may lag behind.
    pub subscription_max: usize,
    /// How long a worker's session lives after its last renewal.
    pub session_ttl: Duration,
    /// The strategy for choosing nodes.
    pub strategy: atlas_duty::Strategy,
    /// True when this member keeps a history: then snapshots wait for [`crate::Handle::history_synced`].
    pub history: bool,
    /// The last event that the history already has. Replayed batches up to it are not kept for
    /// [`crate::Handle::subscribe_from_start`].
    pub history_from: EventSeq,
    /// The disk space that the member reserves.
    pub space: SpaceLimits,
    /// Members compare the digests of their states after this many entries; 0 for never.
    pub digest_every: u64,
    /// A node that is down for this long, holds no lease and is not cordoned is forgotten; none for never.
    pub forget_nodes_after: Option<Duration>,
    /// A retired agent version is forgotten after this time, once all its jobs have ended; none for never.
    pub retired_agents_keep: Option<Duration>,
    /// A snapshot is due after this much log, or after twice the size of the last snapshot if that is more. A purge
    /// keeps this much log.
    pub snapshot_log_bytes: u64,
    /// The interval at which the member checks whether a snapshot is due.
    pub snapshot_look_every: Duration,
}

impl Options {
    /// A member that is alone in its group, with the documented defaults.
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
