//! The open log: group commit, readers, and the rule that a failed sync ends it. Module `read` contains the reads,
//! module `write` the writes.
//!
//! A caller that needs durability stages its records and flushes; a flush writes all staged records as groups. With one
//! voter, the caller of [`Log::append`] flushes immediately on its own thread, and so does a follower while its disk is
//! fast ([`Log::append_led`]). Otherwise a writer flushes, so that the local sync overlaps replication. The writer is a
//! thread, or a task if the driver simulates time. In both cases records are written in the order of staging, because a
//! flush drains the stage under the writer's lock.

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use atlas_env::{Clock, Env};
use bytes::Bytes;
use tokio::sync::Notify;

use self::write::{Closer, Running, cut, write_in_time};
use super::block::Block;
use super::core::{Core, Marks, RecordLocation};
use super::driver::{Driver, MarkFile, Segment, Space};
use super::error::LogError;
use super::index::Index;
use super::mark::Marker;
use super::record::{LogId, Record, Vote};
use super::recover::{RecoveredLog, recover};
use super::sync_times::SyncTimes;

/// Size limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The size of the first segment: small, because it is filled with zeros before the first write.
    pub first_segment_bytes: u64,
    /// Every later segment.
    pub segment_bytes: u64,
    /// The size of the cache for the newest entries' bodies.
    pub cache_bytes: usize,
    /// A group takes no further record beyond this.
    pub group_bytes: usize,
    /// The largest entry.
    pub entry_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            first_segment_bytes: 1 << 20,
            segment_bytes: 16 << 20,
            cache_bytes: 8 << 20,
            group_bytes: 4 << 20,
            entry_bytes: 64 << 20,
        }
    }
}

/// A disk is fast while none of its latest syncs took longer than this. The value is far below the election timeout,
/// because a sync on Raft's own thread delays its messages.
const QUICK: Duration = Duration::from_millis(10);

/// Called once the records are durable, or with an error if they never will be.
pub type AppendAnswer = Box<dyn FnOnce(Result<(), LogError>) + Send>;

/// An open log. Clones share it. Dropping the last one closes it.
#[derive(Clone)]
pub struct Log {
    shared: Arc<Shared>,
    _closer: Arc<Closer>,
}

struct Shared {
    /// Callers that need both lock this before `view`.
    writer: Mutex<Writer>,
    view: Mutex<View>,
    /// Wakes the writer when records are staged or the log closes.
    staged: Wake,
    inline: AtomicBool,
    limits: Limits,
    cluster_id: u128,
    space: Arc<dyn Space>,
    clock: Arc<dyn Clock>,
    syncs: SyncTimes,
}

/// How the writer waits.
enum Wake {
    Thread(Condvar),
    Task(Notify),
}

impl Wake {
    fn wake(&self) {
        match self {
            Self::Thread(staged) => staged.notify_one(),
            Self::Task(staged) => staged.notify_one(),
        }
    }
}

struct Writer {
    core: Core,
    driver: Box<dyn Driver>,
    block: Block,
    places: Vec<RecordLocation>,
    active: Option<Arc<dyn Segment>>,
    marker: Marker,
}

/// Up to which group the durable mark is written and synced.
#[derive(Default)]
struct Marked {
    file: Option<Arc<dyn MarkFile>>,
    written: u64,
    synced: u64,
}

struct View {
    index: Index,
    marks: Marks,
    segments: BTreeMap<u64, Arc<dyn Segment>>,
    stage: Vec<Record>,
    done: Vec<AppendAnswer>,
    /// True when the commit mark is newer than the last staged one.
    committed_moved: bool,
    poison: Option<String>,
    /// True while staged records wait for space on the disk.
    full: bool,
    closed: bool,
    marked: Marked,
    /// True while the writer waits without a timeout for staged records.
    #[cfg(test)]
    idle: bool,
}

impl Log {
    /// Opens the log of `driver`, or creates one. Without a cluster id it uses the log's own, or a random one for a new
    /// log.
    pub fn open(
        mut driver: Box<dyn Driver>,
        limits: Limits,
        cluster_id: Option<u128>,
        env: &Env,
    ) -> Result<Self, LogError> {
        let drawn = env.entropy.u128();
        let recovered = recover(driver.as_mut(), cluster_id, drawn, env.entropy.u64(), &limits)?;
        let RecoveredLog { core, index, segments, torn, mut marker, end, .. } = recovered;
        let mut block = Block::default();
        if torn {
            let file = driver.name(end.sequence);
            tracing::info!(%file, offset = end.offset, group = end.group, "cutting off a torn group that was never acknowledged");
            cut(&core, &segments, driver.as_ref(), &mut block)?;
        }
        let active = segments.values().next_back().cloned();
        let mut marked = Marked { file: marker.file(), ..Marked::default() };
        if let (Some(active), Some(mark)) = (&active, core.mark()) {
            // Data that was read may not be durable yet: if a process died before its sync, the data may be only in the
            // page cache.
            let failed = |source| LogError::Io { what: "sync", file: driver.name(mark.sequence), source };
            active.sync().map_err(failed)?;
            marked.written = if marker.write(&mark) { mark.group } else { 0 };
        }
        let cluster_id = core.cluster_id();
        let view = View {
            index,
            marks: *core.marks(),
            stage: Vec::new(),
            done: Vec::new(),
            committed_moved: false,
            poison: None,
            full: false,
            closed: false,
            marked,
            #[cfg(test)]
            idle: false,
            segments,
        };
        let takes_time = driver.delay().is_some();
        let space = driver.space();
        let writer = Writer { core, driver, block, places: Vec::new(), active, marker };
        let shared = Arc::new(Shared {
            writer: Mutex::new(writer),
            view: Mutex::new(view),
            staged: if takes_time { Wake::Task(Notify::new()) } else { Wake::Thread(Condvar::new()) },
            inline: AtomicBool::new(true),
            limits,
            cluster_id,
            space,
            clock: Arc::clone(&env.clock),
            syncs: SyncTimes::default(),
        });
        let theirs = Arc::clone(&shared);
        let running = if takes_time {
            Running::Task(env.spawn("raft-log", write_in_time(theirs, env.clone())))
        } else {
            let thread = env.vital_thread("raft-log", move || theirs.write_until_closed());
            Running::Thread(thread.map_err(|source| LogError::Io {
                what: "start the writer of",
                file: "log".to_owned(),
                source,
            })?)
        };
        let closer = Closer { shared: Arc::clone(&shared), running: Mutex::new(Some(running)) };
        Ok(Self { shared, _closer: Arc::new(closer) })
    }

    /// The cluster that the log belongs to.
    pub fn cluster_id(&self) -> u128 {
        self.shared.cluster_id
    }

    /// The 99th percentile of the latest syncs; none before the first.
    pub fn sync_p99(&self) -> Option<Duration> {
        self.shared.syncs.p99()
    }

    /// If true, appends are durable before they return. If false, the writer thread makes them durable.
    pub fn set_inline(&self, inline: bool) {
        self.shared.inline.store(inline, Ordering::Relaxed);
    }

    /// Appends entries. They can be read when this returns, and are durable when `done` is called.
    pub fn append(
        &self,
        entries: impl IntoIterator<Item = (LogId, Bytes)>,
        done: AppendAnswer,
    ) -> Result<(), LogError> {
        self.stage(entries, done)?;
        if self.shared.inline.load(Ordering::Relaxed) {
            self.flush_here(self.shared.writer());
        } else {
            self.shared.staged.wake();
        }
        Ok(())
    }

    /// Like [`Self::append`], for entries from a leader that waits for their sync. While the disk is fast the caller
    /// syncs, because waking the writer and waiting for it would take longer. A slow disk or a busy writer does not
    /// delay the caller.
    pub fn append_led(
        &self,
        entries: impl IntoIterator<Item = (LogId, Bytes)>,
        done: AppendAnswer,
    ) -> Result<(), LogError> {
        self.stage(entries, done)?;
        let quick = matches!(self.shared.staged, Wake::Thread(_)) && self.shared.syncs.are_within(QUICK);
        match self.shared.idle_writer().filter(|_| quick) {
            Some(writer) => self.flush_here(writer),
            None => self.shared.staged.wake(),
        }
        Ok(())
    }

    fn stage(&self, entries: impl IntoIterator<Item = (LogId, Bytes)>, done: AppendAnswer) -> Result<(), LogError> {
        let mut view = self.shared.view();
        view.check()?;
        for (id, data) in entries {
            if data.len() > self.shared.limits.entry_bytes {
                return Err(LogError::TooLarge { bytes: data.len() });
            }
            let next = view.index.next();
            if !view.index.push(id, data.clone(), None) {
                return Err(LogError::OutOfOrder { index: id.index, next });
            }
            view.stage.push(Record::Entry { id, data });
        }
        view.done.push(done);
        Ok(())
    }

    fn flush_here(&self, mut writer: MutexGuard<'_, Writer>) {
        // The outcome reaches the callbacks. If the disk is full, the writer was woken to try again.
        let _ = self.shared.flush(&mut writer);
    }

    /// Saves the vote, which is durable when this returns.
    pub fn save_vote(&self, vote: Vote) -> Result<(), LogError> {
        self.mark(Record::Vote(vote), |view| view.marks.vote = Some(vote))
    }

    /// The saved vote.
    pub fn vote(&self) -> Option<Vote> {
        self.shared.view().marks.vote
    }

    /// Saves that entries up to `id` are committed. Written with the next append.
    pub fn save_committed(&self, id: LogId) -> Result<(), LogError> {
        let mut view = self.shared.view();
        view.check()?;
        view.marks.committed = Some(id);
        view.committed_moved = true;
        Ok(())
    }

    /// The saved commit mark.
    pub fn committed(&self) -> Option<LogId> {
        self.shared.view().marks.committed
    }

    /// Drops the entries from `next` on. Durable when this returns.
    pub fn truncate(&self, next: u64) -> Result<(), LogError> {
        self.mark(Record::Truncate(next), |view| {
            view.index.truncate(next);
            view.unstage(|index| index >= next);
        })
    }

    /// Drops the entries up to `id`, and the segments that contain only such entries. Durable when this returns.
    pub fn purge(&self, id: LogId) -> Result<(), LogError> {
        self.mark(Record::Purge(id), |view| {
            view.index.purge(id);
            view.marks.purged = view.index.purged();
            view.unstage(|index| index <= id.index);
        })?;
        let mut writer = self.shared.writer();
        for sequence in writer.core.retire() {
            self.shared.view().segments.remove(&sequence);
            let file = writer.driver.name(sequence);
            writer.driver.retire(sequence).map_err(|source| LogError::Io { what: "retire", file, source })?;
        }
        Ok(())
    }

    /// The last purged entry, and the last entry. If there are no entries, both are the last purged one.
    pub fn bounds(&self) -> (Option<LogId>, Option<LogId>) {
        let view = self.shared.view();
        (view.index.purged(), view.index.last())
    }

    /// The size on disk of the entries from `index` on.
    pub fn bytes_from(&self, index: u64) -> u64 {
        self.shared.view().index.bytes_from(index)
    }

    /// The highest index up to which entries can be purged so that the remaining ones still take `bytes`.
    pub fn index_before_last(&self, bytes: u64) -> Option<u64> {
        self.shared.view().index.index_before_last(bytes)
    }

    /// True while entries wait for disk space. They are not lost, and their callers have no answer yet.
    pub fn waits_for_space(&self) -> bool {
        self.shared.view().full
    }

    /// The free space on the log's disk.
    pub fn space(&self) -> Arc<dyn Space> {
        Arc::clone(&self.shared.space)
    }

    /// The reason why the log accepts no more writes, if it failed.
    pub fn poison(&self) -> Option<String> {
        self.shared.view().poison.clone()
    }

    /// Makes a change and its record durable, after all staged records. Entries that wait for disk space do not delay
    /// it: the record is written before the entries that `change` leaves staged, into space that entries leave free. It
    /// does not depend on those entries.
    fn mark(&self, record: Record, change: impl FnOnce(&mut View)) -> Result<(), LogError> {
        let mut writer = self.shared.writer();
        self.shared.flush_what_fits(&mut writer)?;
        change(&mut self.shared.view());
        let records = [record];
        loop {
            match self.shared.write(&mut writer, &records) {
                (_, Err(LogError::NoSpace { file })) => writer = self.shared.wait_for_space(writer, file)?,
                (_, outcome) => {
                    self.shared.poison_if_failed(outcome)?;
                    return self.shared.flush_what_fits(&mut writer);
                }
            }
        }
    }
}

impl Shared {
    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer, unless another thread uses it.
    fn idle_writer(&self) -> Option<MutexGuard<'_, Writer>> {
        match self.writer.try_lock() {
            Ok(writer) => Some(writer),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl View {
    /// Logs once that the log waits for disk space.
    fn note_full(&mut self, file: &str) {
        if !std::mem::replace(&mut self.full, true) {
            tracing::error!(file, "no disk space for the log, waiting");
        }
    }

    /// Removes staged entries that were dropped before there was space for them. The next flush answers their callers.
    fn unstage(&mut self, gone: impl Fn(u64) -> bool) {
        self.stage.retain(|record| !matches!(record, Record::Entry { id, .. } if gone(id.index)));
    }

    fn check(&self) -> Result<(), LogError> {
        match &self.poison {
            Some(reason) => Err(LogError::Poisoned { reason: reason.clone() }),
            None => Ok(()),
        }
    }
}
