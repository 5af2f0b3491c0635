//! The members of the group, their state, and membership changes.
//!
//! Raft's own membership is the only authority on voters; information that members exchange about themselves
//! ([`greet`]) is kept separately and decides nothing. Changes ([`change`]) are made by the leader, one at a time.
//! Admission, and when a learner is complete, are decided outside of this crate.

mod change;
pub(crate) mod greet;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_env::Env;
use atlas_types::{Level, MemberId, Timestamp};
use openraft::Instant as _;
use openraft::async_runtime::WatchReceiver;
use tokio::sync::watch;

use crate::consensus::network::Addresses;
use crate::machine::Raft;
use crate::member::{Member, Peer};
use crate::monitor::space::{Disk, Room};
use crate::monitor::wall::{Believed, ClockDoubt};
use atlas_log::Log;

pub use change::ChangeError;
pub(crate) use greet::Met;

/// A member that answered within this time counts as reachable. Equals twenty heartbeats.
pub(crate) const REACHED: Duration = Duration::from_secs(1);

/// How long a member's report about its disk is valid.
const ROOMY: Duration = Duration::from_secs(5);

/// How long a member's reported feature level is valid. A member that is away may come back with an older program.
const LEVEL_TOLD: Duration = Duration::from_secs(5);

/// The role of a member in the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It votes and can lead.
    Voter,
    /// Receives the log and does not vote yet.
    Learner,
}

/// A member's report about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The highest feature level that it knows.
    pub level: Level,
    /// The version of its program.
    pub version: String,
    pub term: u64,
    /// The last index of its log.
    pub last_index: u64,
    /// The last index that it has applied.
    pub applied_index: u64,
    /// The 99th percentile of its latest syncs.
    pub sync_p99: Option<Duration>,
    /// Its wall clock, if reported.
    pub wall: Option<Timestamp>,
    /// True if its disk is nearly full.
    pub short_of_space: bool,
    /// What it says of its upkeep.
    pub upkeep: Upkeep,
}

/// What a controller knows about itself that its operator should look at. None where it does not apply or is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Upkeep {
    /// When the state was read of which this controller last sent a complete backup.
    pub backup_at: Option<Timestamp>,
    /// When its certificate should be replaced.
    pub certificate_due: Option<Timestamp>,
    /// When its certificate ends.
    pub certificate_ends: Option<Timestamp>,
}

/// One member as this member sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberView {
    /// Its number, name and addresses.
    pub peer: Peer,
    /// Whether it votes.
    pub role: Role,
    /// Whether it leads, as far as this member knows.
    pub leads: bool,
    /// At the leader: the index up to which this member's log is known to match the leader's.
    pub matched: Option<u64>,
    /// At the leader: the time since this member last answered. None if it has not answered.
    pub heartbeat: Option<Duration>,
    /// Its last report and the age of the report. None if it does not answer.
    pub status: Option<(Status, Duration)>,
}

/// The group as one member sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MembersView {
    /// Who leads, if known.
    pub leader: Option<MemberId>,
    /// This member's term.
    pub term: u64,
    /// The last index that this member knows to be committed.
    pub committed: u64,
    /// The last index that this member has applied.
    pub applied: u64,
    /// The last index of this member's log.
    pub last_index: u64,
    /// The voters: one set, or two during a membership change, each of which needs a majority.
    pub voters: Vec<BTreeSet<MemberId>>,
    /// All members, by number.
    pub members: Vec<MemberView>,
}

impl MembersView {
    /// One member.
    pub fn member(&self, id: MemberId) -> Option<&MemberView> {
        self.members.iter().find(|view| view.peer.member == id)
    }

    /// How many of `voters` answered the leader recently, including the leader itself. Only the leader knows this.
    pub fn reachable<'v>(&self, voters: impl IntoIterator<Item = &'v MemberId>) -> usize {
        let reached = |id: &&MemberId| {
            let view = self.member(**id);
            view.is_some_and(|view| view.leads || view.heartbeat.is_some_and(|since| since < REACHED))
        };
        voters.into_iter().filter(reached).count()
    }
}

/// The parts from which a [`Group`] is made.
pub(crate) struct Parts {
    pub(crate) raft: Raft,
    pub(crate) log: Log,
    /// This member's name and addresses.
    pub(crate) own: Member,
    pub(crate) addresses: Addresses,
    pub(crate) disk: watch::Receiver<Disk>,
    /// The feature level that this member reports.
    pub(crate) level: Level,
    pub(crate) env: Env,
}

/// A member's view of its group. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Group {
    raft: Raft,
    log: Log,
    cluster_id: u128,
    own: Arc<Member>,
    level: Level,
    env: Env,
    addresses: Addresses,
    /// The latest reports of the other members, by number.
    met: Arc<Mutex<BTreeMap<MemberId, Met>>>,
    /// Why this member's wall clock is in doubt, if it is.
    doubt: Arc<watch::Sender<Option<ClockDoubt>>>,
    /// The time when this member's clock was last trusted.
    believed: Arc<Mutex<Option<Believed>>>,
    disk: watch::Receiver<Disk>,
    upkeep: Arc<Mutex<Upkeep>>,
    /// Locked during a membership change, because only one may run at a time.
    changing: Arc<tokio::sync::Mutex<()>>,
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Group({:032x})", self.cluster_id)
    }
}

impl Group {
    /// The group of a member that is starting.
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { raft, log, own, addresses, disk, level, env } = parts;
        let (met, changing, believed, upkeep) = (Arc::default(), Arc::default(), Arc::default(), Arc::default());
        let doubt = Arc::new(watch::Sender::new(None));
        let cluster_id = log.cluster_id();
        let own = Arc::new(own);
        Self { raft, log, cluster_id, own, level, env, addresses, met, doubt, believed, disk, upkeep, changing }
    }

    /// This member's number, name and addresses.
    pub(crate) fn own_peer(&self) -> Peer {
        Peer::new(self.id(), (*self.own).clone())
    }

    fn id(&self) -> MemberId {
        MemberId(*self.raft.node_id())
    }

    fn met(&self) -> MutexGuard<'_, BTreeMap<MemberId, Met>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The group as this member sees it now.
    pub(crate) fn view(&self) -> MembersView {
        // Computed before the metrics are borrowed: a second borrow could wait for a writer, which waits for the first
        // borrow to end.
        let own = self.status();
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let membership = metrics.membership_config.membership();
        let voters: Vec<BTreeSet<MemberId>> =
            membership.get_joint_config().iter().map(|set| set.iter().copied().map(MemberId).collect()).collect();
        let votes = |id: MemberId| voters.iter().any(|set| set.contains(&id));
        let met = self.met();
        let now = self.env.clock.monotonic();
        let members = membership.nodes().map(|(&id, known)| {
            let member = MemberId(id);
            let heartbeat = metrics.heartbeat.as_ref().and_then(|beats| beats.get(&id)?.as_ref());
            let told = if member == self.id() {
                Some((own.clone(), Duration::ZERO))
            } else {
                met.get(&member).and_then(|met| Some((met.status.clone()?, now.saturating_sub(met.at))))
            };
            MemberView {
                peer: Peer::new(member, known.clone()),
                role: if votes(member) { Role::Voter } else { Role::Learner },
                leads: metrics.current_leader == Some(id),
                matched: metrics.replication.as_ref().and_then(|all| all.get(&id)?.as_ref()).map(|log_id| log_id.index),
                heartbeat: heartbeat.map(|instant| instant.elapsed()),
                status: told,
            }
        });
        MembersView {
            leader: metrics.current_leader.map(MemberId),
            term: metrics.current_term,
            committed: metrics.local_committed.map_or(0, |id| id.index),
            applied: metrics.last_applied.map_or(0, |id| id.index),
            last_index: metrics.last_log_index.unwrap_or_default(),
            members: members.collect(),
            voters,
        }
    }

    /// The highest feature level that all members know, or none unless every member has reported recently.
    pub(crate) fn level_of_all(&self) -> Option<Level> {
        let told = |view: MemberView| view.status.filter(|(_, age)| *age < LEVEL_TOLD).map(|(status, _)| status.level);
        self.view().members.into_iter().map(told).min().flatten()
    }

    /// This member's report about itself.
    fn status(&self) -> Status {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        Status {
            level: self.level,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            term: metrics.current_term,
            last_index: metrics.last_log_index.unwrap_or_default(),
            applied_index: metrics.last_applied.map_or(0, |id| id.index),
            sync_p99: self.log.sync_p99(),
            wall: Some(self.env.clock.wall()),
            short_of_space: self.disk.borrow().room != Room::Ample,
            upkeep: *self.upkeep(),
        }
    }

    /// What this member reports of its upkeep.
    pub(crate) fn upkeep(&self) -> MutexGuard<'_, Upkeep> {
        // Every change is complete while the lock is held.
        self.upkeep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why this member's wall clock is in doubt, if it is.
    pub(crate) fn clock_doubt(&self) -> watch::Receiver<Option<ClockDoubt>> {
        self.doubt.subscribe()
    }

    /// The timestamp for an entry: the wall clock's time as long as the wall clock is trusted.
    pub(crate) fn stamp(&self) -> Timestamp {
        let (wall, now) = (self.env.clock.wall(), self.env.clock.monotonic());
        let believed = *self.believed.lock().unwrap_or_else(PoisonError::into_inner);
        believed.map_or(wall, |believed| believed.stamp(wall, now))
    }

    /// A voter that answered recently and has free disk space, to lead in place of this member.
    pub(crate) fn roomy_voter(&self) -> Option<MemberId> {
        let roomy = |view: &MemberView| {
            let told = view.status.as_ref().filter(|(_, age)| *age < ROOMY);
            view.role == Role::Voter && !view.leads && told.is_some_and(|(status, _)| !status.short_of_space)
        };
        self.view()
            .members
            .iter()
            .find(|view| view.peer.member != self.id() && roomy(view))
            .map(|view| view.peer.member)
    }
}
