//! The files of a stopped member: reading its log and snapshot, and creating files for a member that starts from a state.
//!
//! For operators, and only while no controller runs on the directory, which the log's lock ensures. Reading changes
//! nothing on disk on disk, not even a torn tail. The changes that a restarted state needs (another cluster id, tokens
//! that were never issued) are up to the caller.

mod begin;
mod files;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use atlas_replica::{Halt, Replica};
use atlas_state::State;
use atlas_types::MemberId;
use bytes::Bytes;
use openraft::EntryPayload;

pub use begin::{Beginning, begin};

use self::files::ReadOnlyDriver;
use crate::Peer;
use crate::consensus::machine::Machine;
use crate::consensus::snapshot::SnapshotFile;
use crate::consensus::{RaftMembership, RaftSnapshotMeta, body};
use crate::machine::StateMachine;
use atlas_log::index::EntrySource;
use atlas_log::recover::{RecoveredLog, recover};
use atlas_log::{Limits, LogError, LogId, Record, Vote};

/// Why the files of a member cannot be read or created.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// The log is missing.
    #[error("\"{}\" contains no controller log", path.display())]
    NoLog {
        /// The expected directory.
        path: PathBuf,
    },
    /// The log cannot be read.
    #[error("could not read the log")]
    Log(#[source] LogError),
    /// The snapshot cannot be read.
    #[error("could not read the snapshot")]
    Snapshot(#[source] io::Error),
    /// An entry contains data that this program does not know.
    #[error("could not read entry {index}")]
    Entry {
        /// Which one.
        index: u64,
        /// What is wrong with it.
        source: io::Error,
    },
    /// The log does not reach back to the snapshot.
    #[error("entries {first} to {last} are missing between the snapshot and the log")]
    Gap {
        /// The first missing one.
        first: u64,
        /// The last missing one.
        last: u64,
    },
    /// An entry could not be applied again.
    #[error("could not apply entry {index} again")]
    Replay {
        /// Which one.
        index: u64,
        /// Why not.
        source: Halt,
    },
    /// The directory for the new files already exists.
    #[error("\"{}\" exists already", path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// The new files could not be written.
    #[error("could not write \"{}\"", path.display())]
    Write {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// A member whose files are open for reading, and locked against a controller that would start on them.
pub struct StoppedMember {
    recovered: RecoveredLog,
    snapshot: Option<(RaftSnapshotMeta, SnapshotFile)>,
    membership: RaftMembership,
    cut_short: bool,
    /// Holds the log's lock.
    _driver: ReadOnlyDriver,
}

/// A summary of a member's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The cluster that the log belongs to.
    pub cluster_id: u128,
    /// The last vote.
    pub vote: Option<Vote>,
    /// The last entry that this member knew to be committed. Later entries may be committed as well.
    pub committed: Option<LogId>,
    /// The last entry that was purged from the log.
    pub purged: Option<LogId>,
    /// The last entry.
    pub last: Option<LogId>,
    /// True if the log has data after the last durable group. That data was never acknowledged.
    pub torn: bool,
    /// True if durable groups at the end of the log are damaged and were left out.
    pub cut_short: bool,
    /// The snapshot, if there is one.
    pub snapshot: Option<SnapshotAbout>,
    /// The voters, as far as this member knows.
    pub voters: Vec<MemberId>,
    /// All members that it knows.
    pub members: Vec<Peer>,
}

impl About {
    /// True if the files may belong to a cluster's first member before others joined. Such files need not contain the
    /// member's number.
    pub fn knows_no_other_than(&self, member: MemberId) -> bool {
        self.members.iter().all(|known| known.member == member)
    }
}

/// What a snapshot covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotAbout {
    /// The last entry in it.
    pub last: Option<LogId>,
    /// Its size.
    pub bytes: u64,
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEntry {
    /// Its id.
    pub id: LogId,
    /// The size of its body.
    pub bytes: usize,
    pub says: LogContent,
}

/// The content of a log entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogContent {
    /// A blank entry, which a new leader writes.
    Blank,
    /// The membership from this entry on.
    Membership {
        /// The voters: one set, or two during a membership change.
        voters: Vec<Vec<MemberId>>,
        /// All members.
        members: Vec<Peer>,
    },
    /// An entry of the replicated state, encoded.
    Commands(Bytes),
}

/// How to treat a log whose last groups are damaged although they were durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// Refuse the log.
    Whole,
    /// End the log before the damaged groups and drop their data.
    DropDamaged,
}

impl StoppedMember {
    /// Opens the files of the member whose data is in `data_dir`.
    pub fn open(data_dir: &Path) -> Result<Self, OfflineError> {
        Self::open_with(data_dir, Tail::Whole)
    }

    /// Like [`Self::open`], for a log whose last groups may be damaged.
    pub fn open_with(data_dir: &Path, tail: Tail) -> Result<Self, OfflineError> {
        let raft = data_dir.join("raft");
        let mut driver = ReadOnlyDriver::open(&raft.join("log"), tail)?;
        let limits = Limits { cache_bytes: 0, ..Limits::default() };
        let recovered = recover(&mut driver, None, 0, 0, &limits).map_err(OfflineError::Log)?;
        let snapshot = files::newest_snapshot(&raft.join("snapshots")).map_err(OfflineError::Snapshot)?;
        let cut_short = tail == Tail::DropDamaged && driver.ends_before_mark(recovered.end);
        let known = snapshot.as_ref().map(|(meta, _)| meta.last_membership.membership().clone());
        let membership = known.unwrap_or_default();
        let mut member = Self { recovered, snapshot, membership, cut_short, _driver: driver };
        if let Some(latest) = member.latest_membership()? {
            member.membership = latest;
        }
        Ok(member)
    }

    /// A summary of the files.
    pub fn about(&self) -> About {
        let marks = self.recovered.core.marks();
        let index = &self.recovered.index;
        About {
            cluster_id: self.recovered.core.cluster_id(),
            vote: marks.vote,
            committed: marks.committed,
            purged: index.purged(),
            last: index.last(),
            torn: self.recovered.torn && !self.cut_short,
            cut_short: self.cut_short,
            snapshot: self
                .snapshot
                .as_ref()
                .map(|(meta, file)| SnapshotAbout { last: meta.last_log_id.map(body::log_id), bytes: file.bytes }),
            voters: self.membership.voter_ids().map(MemberId).collect(),
            members: members(&self.membership),
        }
    }

    /// The entries of the log from index `from` on, in order.
    pub fn entries(&self, from: u64) -> impl Iterator<Item = Result<LoggedEntry, OfflineError>> {
        let index = &self.recovered.index;
        (from.max(index.first())..index.next()).map(|index| self.entry(index))
    }

    /// The state of the snapshot with all later entries applied, committed or not. This member alone cannot tell which
    /// are committed, and all of them may have been acknowledged.
    pub fn state(&self) -> Result<State, OfflineError> {
        let mut next = 0;
        let mut replica = Replica::new(State::new(self.recovered.core.cluster_id()));
        if let Some((meta, file)) = &self.snapshot {
            let (_, state) = file.read(StateMachine::read).map_err(OfflineError::Snapshot)?;
            replica = Replica::new(state);
            next = meta.last_log_id.map_or(0, |id| id.index + 1);
        }
        let first = self.recovered.index.first();
        if first > next && self.recovered.index.purged().is_some() {
            return Err(OfflineError::Gap { first: next, last: first - 1 });
        }
        for entry in self.entries(next) {
            let entry = entry?;
            if let LogContent::Commands(bytes) = &entry.says {
                let index = entry.id.index;
                replica.apply(bytes).map_err(|source| OfflineError::Replay { index, source })?;
            }
        }
        Ok(replica.state().clone())
    }

    /// The membership set by the latest membership entry.
    fn latest_membership(&self) -> Result<Option<RaftMembership>, OfflineError> {
        let index = &self.recovered.index;
        for at in (index.first()..index.next()).rev() {
            let (id, bytes) = self.bytes(at)?;
            if bytes.last() == Some(&body::KIND_MEMBERSHIP) {
                let entry = body::entry(body::raft_log_id(id), bytes);
                let entry = entry.map_err(|error| unreadable(at, io::Error::other(error)))?;
                if let EntryPayload::Membership(membership) = entry.payload {
                    return Ok(Some(membership));
                }
            }
        }
        Ok(None)
    }

    fn entry(&self, index: u64) -> Result<LoggedEntry, OfflineError> {
        let (id, bytes) = self.bytes(index)?;
        let len = bytes.len();
        let entry = body::entry(body::raft_log_id(id), bytes);
        let entry = entry.map_err(|error| unreadable(index, io::Error::other(error)))?;
        let says = match entry.payload {
            EntryPayload::Blank => LogContent::Blank,
            EntryPayload::Normal(proposal) => LogContent::Commands(Bytes::copy_from_slice(proposal.entry())),
            EntryPayload::Membership(membership) => {
                let sets = membership.get_joint_config().iter();
                let voters = sets.map(|set| set.iter().copied().map(MemberId).collect()).collect();
                LogContent::Membership { voters, members: members(&membership) }
            }
        };
        Ok(LoggedEntry { id, bytes: len, says })
    }

    /// The body of an entry.
    fn bytes(&self, index: u64) -> Result<(LogId, Bytes), OfflineError> {
        let missing = || unreadable(index, io::Error::from(io::ErrorKind::NotFound));
        let place = match self.recovered.index.find(index).ok_or_else(missing)? {
            EntrySource::Cached(id, data) => return Ok((id, data)),
            EntrySource::OnDisk(place) => place,
        };
        let segment = self.recovered.segments.get(&u64::from(place.sequence)).ok_or_else(missing)?;
        let mut bytes = vec![0; place.len as usize];
        segment.read_at(u64::from(place.offset), &mut bytes).map_err(|error| unreadable(index, error))?;
        match Record::decode(place.seed, &bytes) {
            Some((Record::Entry { id, data }, ..)) => Ok((id, data)),
            _ => Err(unreadable(index, io::Error::other("it changed while it was read"))),
        }
    }
}

fn unreadable(index: u64, source: io::Error) -> OfflineError {
    OfflineError::Entry { index, source }
}

fn members(membership: &RaftMembership) -> Vec<Peer> {
    membership.nodes().map(|(&id, known)| Peer::new(MemberId(id), known.clone())).collect()
}
