//! openraft's log storage, implemented with our log.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};

use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::{EntryPayload, LogState, OptionalSend, RaftLogReader};

use super::{RaftEntry, RaftLogId, RaftVote, Types, body};
use atlas_log::Log;

/// Bytes that one limited read takes.
const READ_BYTES: usize = 1 << 20;

/// Implements openraft's log traits.
#[derive(Clone)]
pub(crate) struct LogStore {
    log: Log,
    member: u64,
}

impl LogStore {
    /// The log of `member`.
    pub(crate) fn new(log: Log, member: u64) -> Self {
        Self { log, member }
    }

    fn read(&self, from: u64, to: u64, bytes: usize) -> io::Result<Vec<RaftEntry>> {
        let entries = self.log.read(from, to, bytes)?.into_iter();
        entries.map(|(id, data)| body::entry(body::raft_log_id(id), data).map_err(io::Error::other)).collect()
    }
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<R>(&mut self, range: R) -> io::Result<Vec<RaftEntry>>
    where
        R: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let from = match range.start_bound() {
            Bound::Included(&from) => from,
            Bound::Excluded(&before) => before + 1,
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&to) => to,
            Bound::Unbounded => u64::MAX,
        };
        self.read(from, to, usize::MAX)
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<RaftEntry>> {
        let mut entries = self.read(start, end, READ_BYTES)?;
        // If the beginning was purged while a stream of replication was about to read it, what is left must not be sent: it does not follow the
        // entry before `start`. Without entries openraft sends a heartbeat, and the follower gets a snapshot.
        if entries.first().is_some_and(|entry| entry.log_id.index != start) {
            entries.clear();
        }
        Ok(entries)
    }

    async fn read_vote(&mut self) -> io::Result<Option<RaftVote>> {
        Ok(self.log.vote().map(body::raft_vote))
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> io::Result<LogState<Types>> {
        let (purged, last) = self.log.bounds();
        Ok(LogState { last_purged_log_id: purged.map(body::raft_log_id), last_log_id: last.map(body::raft_log_id) })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &RaftVote) -> io::Result<()> {
        Ok(self.log.save_vote(body::log_vote(*vote))?)
    }

    async fn save_committed(&mut self, committed: Option<RaftLogId>) -> io::Result<()> {
        match committed {
            Some(id) => Ok(self.log.save_committed(body::log_id(id))?),
            None => Ok(()),
        }
    }

    async fn read_committed(&mut self) -> io::Result<Option<RaftLogId>> {
        // The commit mark is written in a later group than its entries. After a crash it may point to purged entries,
        // but never past the end of the log.
        Ok(self.log.committed().map(body::raft_log_id))
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> io::Result<()>
    where
        I: IntoIterator<Item = RaftEntry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut records = Vec::new();
        for entry in entries {
            if let EntryPayload::Membership(membership) = &entry.payload {
                // Without replication, a thread hop costs more than overlapping the sync saves.
                self.log.set_inline(membership.voter_ids().count() <= 1);
            }
            records.push((body::log_id(entry.log_id), body::entry_body(&entry)));
        }
        let led = records.first().is_some_and(|(id, _)| id.node != self.member);
        let done = Box::new(move |outcome: Result<(), _>| callback.io_completed(outcome.map_err(io::Error::from)));
        Ok(if led { self.log.append_led(records, done) } else { self.log.append(records, done) }?)
    }

    async fn truncate_after(&mut self, last: Option<RaftLogId>) -> io::Result<()> {
        Ok(self.log.truncate(last.map_or(0, |id| id.index + 1))?)
    }

    async fn purge(&mut self, id: RaftLogId) -> io::Result<()> {
        Ok(self.log.purge(body::log_id(id))?)
    }
}
