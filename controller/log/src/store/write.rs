//! The write side of an open log: staged records become groups and are made durable. On a full disk they wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use atlas_env::{Env, Task, chain, is_full};

use super::{AppendAnswer, Marked, Shared, View, Wake, Writer};
use crate::block::{BLOCK_BYTES, Block};
use crate::core::Core;
use crate::driver::{Driver, Segment};
use crate::error::LogError;
use crate::record::Record;

/// The durable mark is synced when no group has followed the last one for this long. Until then, the next group proves
/// the same.
const MARK_DELAY: Duration = Duration::from_millis(100);

/// The interval at which the writer tries again on a full disk.
const SPACE_RETRY: Duration = Duration::from_millis(100);

/// The next work of the writer thread.
enum Work {
    Flush,
    SyncMark,
    End,
}

impl Shared {
    pub(super) fn write_until_closed(&self) {
        let Wake::Thread(staged) = &self.staged else { return };
        loop {
            match self.next_work(staged) {
                Work::End => return,
                Work::SyncMark => self.sync_mark(),
                Work::Flush => {
                    // Other outcomes reach the callbacks.
                    let outcome = self.flush(&mut self.writer());
                    if let Err(LogError::NoSpace { .. }) = outcome {
                        let view = self.view();
                        if view.closed {
                            return;
                        }
                        drop(staged.wait_timeout(view, SPACE_RETRY));
                    }
                }
            }
        }
    }

    /// Waits until there is something to do.
    fn next_work(&self, staged: &Condvar) -> Work {
        let mut view = self.view();
        loop {
            if !view.stage.is_empty() {
                return if view.poison.is_none() { Work::Flush } else { Work::End };
            }
            if view.closed {
                return Work::End;
            }
            if view.marked.is_synced() {
                view = wait_idle(staged, view);
                continue;
            }
            let written = view.marked.written;
            let waited = staged.wait_timeout(view, MARK_DELAY).unwrap_or_else(PoisonError::into_inner);
            view = waited.0;
            if waited.1.timed_out() && view.marked.written == written && view.stage.is_empty() {
                return Work::SyncMark;
            }
        }
    }

    /// Makes the durable mark durable itself.
    fn sync_mark(&self) {
        let (file, written) = {
            let marked = &self.view().marked;
            (marked.file.clone(), marked.written)
        };
        let Some(file) = file else { return };
        let synced = file.sync();
        let marked = &mut self.view().marked;
        if let Err(error) = &synced {
            // The mark is correct nevertheless, but may be lost in a power failure.
            tracing::warn!(%error, "could not sync the log's durable mark; damage to its last group may go unnoticed");
            marked.file = None;
        }
        marked.synced = written;
    }

    /// Makes all staged records durable, unless the disk has no space for them.
    pub(super) fn flush_what_fits(&self, writer: &mut Writer) -> Result<(), LogError> {
        match self.flush(writer) {
            Err(LogError::NoSpace { .. }) => Ok(()),
            outcome => outcome,
        }
    }

    /// Releases the writer for a moment. The caller needs durability and cannot continue without it: a member that
    /// cannot save its vote must not vote. In a simulation no time would pass, so this is an error there.
    pub(super) fn wait_for_space<'s>(
        &'s self,
        writer: MutexGuard<'s, Writer>,
        file: String,
    ) -> Result<MutexGuard<'s, Writer>, LogError> {
        drop(writer);
        let mut view = self.view();
        view.note_full(&file);
        if matches!(self.staged, Wake::Task(_)) || view.closed {
            return Err(LogError::NoSpace { file });
        }
        drop(view);
        std::thread::sleep(SPACE_RETRY);
        Ok(self.writer())
    }

    /// Makes all staged records durable.
    pub(super) fn flush(&self, writer: &mut Writer) -> Result<(), LogError> {
        let (mut records, done) = {
            let mut view = self.view();
            if let Err(error) = view.check() {
                // These records were staged while another thread's write failed. Their callers did not get that error
                // yet.
                let done = std::mem::take(&mut view.done);
                drop(view);
                answer(done, Some(&chain(&error)));
                return Err(error);
            }
            if view.committed_moved && !view.stage.is_empty() {
                view.committed_moved = false;
                let committed = view.marks.committed.map(Record::Committed);
                view.stage.extend(committed);
            }
            (std::mem::take(&mut view.stage), std::mem::take(&mut view.done))
        };
        let (written, outcome) = self.write(writer, &records);
        if let Err(LogError::NoSpace { file }) = outcome {
            return Err(self.put_back(records.split_off(written), done, file));
        }
        let outcome = self.poison_if_failed(outcome);
        if outcome.is_ok() && std::mem::replace(&mut self.view().full, false) {
            tracing::info!("disk space for the log is available again");
        }
        answer(done, outcome.as_ref().err().map(|error| chain(error)).as_deref());
        outcome
    }

    /// Stages records that found no disk space again, before the records staged since. The writer is woken, because it
    /// may have found the stage empty meanwhile and would not check again by itself.
    fn put_back(&self, mut records: Vec<Record>, mut done: Vec<AppendAnswer>, file: String) -> LogError {
        let mut view = self.view();
        records.append(&mut view.stage);
        done.append(&mut view.done);
        (view.stage, view.done) = (records, done);
        view.note_full(&file);
        drop(view);
        self.staged.wake();
        LogError::NoSpace { file }
    }

    /// Poisons the log if writing failed. After any failure except a full disk, the content of the disk is unknown.
    pub(super) fn poison_if_failed(&self, outcome: Result<(), LogError>) -> Result<(), LogError> {
        outcome.inspect_err(|error| {
            let reason = chain(error);
            tracing::error!(%reason, "the log failed and accepts no more writes");
            self.view().poison = Some(reason);
        })
    }

    /// Writes and syncs records as groups. Also returns how many records are durable.
    pub(super) fn write(&self, writer: &mut Writer, mut records: &[Record]) -> (usize, Result<(), LogError>) {
        let mut written = 0;
        while !records.is_empty() {
            let mut bytes = 0;
            let fits = |record: &&Record| {
                let before = bytes;
                bytes += record.encoded_len();
                before == 0 || bytes <= self.limits.group_bytes
            };
            let (group, rest) = records.split_at(records.iter().take_while(fits).count());
            if let Err(error) = self.write_group(writer, group) {
                return (written, Err(error));
            }
            written += group.len();
            records = rest;
        }
        (written, Ok(()))
    }

    fn write_group(&self, writer: &mut Writer, records: &[Record]) -> Result<(), LogError> {
        writer.places.clear();
        let Writer { core, driver, block, places, active, marker } = writer;
        // The segment is created before the group is planned, so that a full disk leaves the plan unchanged.
        let made = match core.next_segment(records) {
            None => None,
            Some((sequence, sizes)) => match driver.create(sequence, sizes.least, sizes.usual) {
                Ok(segment) => Some(segment),
                Err(error) if is_full(&error) => {
                    return Err(LogError::NoSpace { file: driver.name(sequence) });
                }
                Err(source) => return Err(LogError::Io { what: "create", file: driver.name(sequence), source }),
            },
        };
        let plan = core.plan(records, block, places);
        let failed =
            |driver: &dyn Driver, what, source| LogError::Io { what, file: driver.name(plan.sequence), source };
        if let Some(segment) = made {
            core.created(segment.size());
            self.view().segments.insert(plan.sequence, Arc::clone(&segment));
            *active = Some(segment);
        }
        let segment = active.as_ref().expect("the plan names a segment that exists");
        segment.write_at(plan.offset, block.as_ref()).map_err(|error| failed(driver.as_ref(), "write", error))?;
        let begun = self.clock.monotonic();
        segment.sync().map_err(|error| failed(driver.as_ref(), "sync", error))?;
        self.syncs.note(self.clock.monotonic().saturating_sub(begun));
        // The mark is written before the acknowledgement, so that acknowledged data is always below the mark while the
        // system runs.
        let marked = core.mark().filter(|mark| marker.write(mark));
        let mut view = self.view();
        if let Some(mark) = marked {
            let idle = view.marked.is_synced();
            view.marked.written = mark.group;
            if idle {
                // The writer is woken so that it waits with a timeout and then syncs the mark.
                self.staged.wake();
            }
        }
        let entries = records.iter().filter_map(|record| match record {
            Record::Entry { id, .. } => Some(id.index),
            _ => None,
        });
        for (index, place) in entries.zip(&writer.places) {
            view.index.placed(index, *place);
        }
        view.index.trim(self.limits.cache_bytes);
        Ok(())
    }
}

/// Waits without a timeout until the writer is woken.
fn wait_idle<'v>(staged: &Condvar, view: MutexGuard<'v, View>) -> MutexGuard<'v, View> {
    #[cfg(test)]
    let view = {
        let mut view = view;
        view.idle = true;
        view
    };
    let view = staged.wait(view).unwrap_or_else(PoisonError::into_inner);
    #[cfg(test)]
    let view = {
        let mut view = view;
        view.idle = false;
        view
    };
    view
}

impl Marked {
    /// True if the mark on disk is up to date and durable.
    fn is_synced(&self) -> bool {
        self.file.is_none() || self.written == self.synced
    }
}

/// Reports to waiting callers that their records are durable, or why they never will be.
fn answer(done: Vec<AppendAnswer>, reason: Option<&str>) {
    for done in done {
        done(reason.map_or(Ok(()), |reason| Err(LogError::Poisoned { reason: reason.to_owned() })));
    }
}

/// The writer as a task: it sleeps for the simulated duration of a group and then writes and syncs the group at once.
pub(super) async fn write_in_time(shared: Arc<Shared>, env: Env) {
    let Wake::Task(staged) = &shared.staged else { return };
    loop {
        let (synced, written) = {
            let marked = &shared.view().marked;
            (marked.is_synced(), marked.written)
        };
        tokio::select! {
            biased;
            () = staged.notified() => {}
            () = env.clock.sleep(MARK_DELAY), if !synced => {
                if shared.view().marked.written == written {
                    shared.sync_mark();
                }
            }
        }
        while !shared.view().stage.is_empty() {
            let delay = shared.writer().driver.delay().unwrap_or_default();
            env.clock.sleep(delay).await;
            // The outcome reaches the callbacks. A failed log accepts no more writes.
            let outcome = shared.flush(&mut shared.writer());
            match outcome {
                Ok(()) => {}
                Err(LogError::NoSpace { .. }) => env.clock.sleep(SPACE_RETRY).await,
                Err(_) => return,
            }
        }
    }
}

/// The background writer.
pub(super) enum Running {
    Thread(JoinHandle<()>),
    Task(Task<()>),
}

/// Stops the writer and proves that the last group is durable.
pub(super) struct Closer {
    pub(super) shared: Arc<Shared>,
    pub(super) running: Mutex<Option<Running>>,
}

impl Drop for Closer {
    fn drop(&mut self) {
        self.shared.view().closed = true;
        self.shared.staged.wake();
        let ended = match self.running.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            Some(Running::Thread(thread)) => thread.join().is_ok(),
            Some(Running::Task(task)) => {
                task.abort();
                true
            }
            None => true,
        };
        if !ended {
            // After a panic of the writer, the log cannot be closed cleanly.
            return;
        }
        let mut writer = self.shared.writer();
        if self.shared.view().poison.is_none() && writer.active.is_some() {
            // An empty group after the last one proves that the last one is durable. Without it, the next start assumes
            // a crash.
            let _ = self.shared.write_group(&mut writer, &[]);
            self.shared.sync_mark();
        }
    }
}

/// Erases the beginning of a torn group durably, so that a later write over it can never complete it.
pub(super) fn cut(
    core: &Core,
    segments: &BTreeMap<u64, Arc<dyn Segment>>,
    driver: &dyn Driver,
    block: &mut Block,
) -> Result<(), LogError> {
    let Some((active, segment)) = core.active().and_then(|active| Some((active, segments.get(&active.sequence)?)))
    else {
        return Ok(());
    };
    block.clear(BLOCK_BYTES);
    if active.position + BLOCK_BYTES as u64 > active.size {
        return Ok(());
    }
    let done = segment.write_at(active.position, block.as_ref()).and_then(|()| segment.sync());
    done.map_err(|source| LogError::Io { what: "cut", file: driver.name(active.sequence), source })
}
