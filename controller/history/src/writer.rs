//! The writer: one thread, one connection, one transaction for everything that is waiting.
//!
//! The writer waits a moment before each transaction, because a transaction costs as much as several jobs and no caller
//! waits for it: until then the state holds the job. At most once per [`Options::sync_interval`] it syncs the
//! write-ahead file and reports its progress.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Clock;
use atlas_format::encode_job;
use atlas_types::{Event, EventRecord, EventSeq, Job, Timestamp};
use rusqlite::{Connection, ffi, params};
use tokio::sync::{mpsc, oneshot, watch};

use crate::fill::{self, Filling};
use crate::ids::{self, RecentIds};
use crate::record::{encode_event, id_column};
use crate::retention::{self, Retention};
use crate::rows::{column, index, refer};
use crate::totals::Sums;
use crate::{EndedJob, Gap, HistoryError, KeepRule, Options, erase, gap, sum, totals};

/// A request to the writer.
pub(crate) enum Input {
    Events(Arc<[EventRecord]>),
    Resync { ended: Vec<EndedJob>, through: EventSeq },
    Fill { filling: Box<Filling>, done: oneshot::Sender<()> },
    GiveUp { gap: Gap, done: oneshot::Sender<()> },
    Keep(Arc<[KeepRule]>),
    Close,
}

/// The most events of one transaction. This bounds memory, and the work that is repeated after a failed transaction.
const EVENTS_MAX: usize = 8_192;
/// The most bytes and events of one blob, because a reader reads whole blobs.
pub(crate) const BLOB_BYTES_MAX: usize = 256 << 10;
pub(crate) const BLOB_EVENTS_MAX: u64 = 1_024;
/// The pause before a failed transaction is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct Writer {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    pub(crate) options: Options,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) inputs: mpsc::Receiver<Input>,
    pub(crate) synced: watch::Sender<EventSeq>,
    pub(crate) gaps: watch::Sender<Arc<[Gap]>>,
    pub(crate) observe: Box<dyn Fn(Progress) + Send>,
    /// A descriptor of the write-ahead file, once the file exists.
    pub(crate) wal: Option<File>,
    pub(crate) retention: Retention,
    pub(crate) ids: Arc<RecentIds>,
}

/// A duration, for metrics.
#[derive(Debug, Clone, Copy)]
pub enum Progress {
    /// One transaction, and the last event in it.
    Committed {
        /// How long it took.
        took: Duration,
        /// The last event in it.
        through: EventSeq,
    },
    /// One sync to disk.
    Synced {
        /// How long it took.
        took: Duration,
    },
}

impl Writer {
    /// Runs until it is closed or every sender is dropped, then syncs the remaining data.
    pub(crate) fn run(mut self) {
        if let Err(error) = self.work() {
            // A failed sync is not repeated: the system may have dropped data that it could not write, and a second
            // sync would not report that. No further events are acknowledged, so the state keeps the uncertain jobs. A
            // restart reads what the file contains.
            tracing::error!(error = &error as &dyn std::error::Error, path = %self.path.display(), "history has stopped, restart the controller");
        }
        // The file is closed before callers see the end of `synced`.
        let Self { connection, inputs, synced, gaps, .. } = self;
        drop(inputs);
        drop(connection);
        drop(gaps);
        drop(synced);
    }

    fn work(&mut self) -> Result<(), HistoryError> {
        let mut written = *self.synced.borrow();
        let mut waiting = Vec::new();
        let mut closing = false;
        while !closing {
            let Some(first) = self.inputs.blocking_recv() else { break };
            waiting.push(first);
            let began = self.clock.monotonic();
            loop {
                self.gather(&mut waiting);
                closing |= waiting.iter().any(|input| matches!(input, Input::Close));
                if !waiting.is_empty() {
                    written = self.commit_until_done(&waiting, written)?;
                    self.answer(&mut waiting)?;
                }
                let due = self.clock.monotonic().saturating_sub(began) >= self.options.sync_interval;
                if closing || due || (self.inputs.is_closed() && self.inputs.is_empty()) {
                    break;
                }
            }
            self.acknowledge(written)?;
        }
        Ok(())
    }

    /// Waits a moment and takes the inputs that arrived meanwhile.
    fn gather(&mut self, waiting: &mut Vec<Input>) {
        std::thread::sleep(self.options.gather_interval);
        let mut events: usize = waiting.iter().map(len).sum();
        while events < EVENTS_MAX {
            let Ok(next) = self.inputs.try_recv() else { break };
            events += len(&next);
            waiting.push(next);
        }
    }

    /// Repeats the transaction until it succeeds, because a full disk or a lock may go away. No event is lost, and the
    /// state keeps the jobs meanwhile.
    fn commit_until_done(&mut self, waiting: &[Input], written: EventSeq) -> Result<EventSeq, HistoryError> {
        loop {
            let start = self.clock.monotonic();
            match self.commit(waiting, written) {
                Ok(through) => {
                    let took = self.clock.monotonic().saturating_sub(start);
                    (self.observe)(Progress::Committed { took, through });
                    return Ok(through);
                }
                Err(error) if self.inputs.is_closed() || failed_to_sync(&error) => return Err(error),
                Err(error) => {
                    tracing::error!(error = &error as &dyn std::error::Error, path = %self.path.display(), "could not write history, trying again");
                    std::thread::sleep(RETRY_INTERVAL);
                }
            }
        }
    }

    /// Answers the callers whose input is written, and publishes the current gaps.
    fn answer(&mut self, waiting: &mut Vec<Input>) -> Result<(), HistoryError> {
        let found = gap::load(&self.connection)?;
        self.gaps.send_if_modified(|gaps| {
            let changed = **gaps != *found;
            *gaps = found.into();
            changed
        });
        for input in waiting.drain(..) {
            if let Input::Fill { done, .. } | Input::GiveUp { done, .. } = input {
                // A caller that stopped waiting needs no answer.
                let _ = done.send(());
            }
        }
        Ok(())
    }

    fn commit(&mut self, waiting: &[Input], written: EventSeq) -> Result<EventSeq, HistoryError> {
        let sql = || HistoryError::sql("write");
        let transaction = self.connection.transaction().map_err(sql())?;
        self.ids.begin();
        let mut batch = Batch::new(&self.ids, written);
        {
            let mut insert = transaction.prepare_cached(INSERT_JOB).map_err(sql())?;
            for input in waiting {
                match input {
                    Input::Events(events) => {
                        for event in events.iter() {
                            batch.event(&transaction, &mut insert, event)?;
                        }
                    }
                    Input::Resync { ended, through } => batch.resync(&transaction, &mut insert, ended, *through)?,
                    Input::Fill { filling, .. } => filling.write(&transaction, &self.ids)?,
                    Input::GiveUp { gap, .. } => fill::give_up(&transaction, *gap)?,
                    Input::Keep(kept) => self.retention.keep(kept),
                    Input::Close => {}
                }
            }
        }
        batch.flush(&transaction)?;
        std::mem::take(&mut batch.totals).write(&transaction)?;
        if batch.through > written {
            transaction
                .prepare_cached("UPDATE progress SET watermark = ?1")
                .and_then(|mut update| update.execute([column(batch.through)]))
                .map_err(sql())?;
            // Retention runs only now and then. A deletion in every transaction would double its cost.
            let kept = self.options.events_kept;
            if batch.through.0 / 4_096 != written.0 / 4_096 {
                totals::drop_ends(&transaction)?;
                if batch.through.0 > kept {
                    retention::drop_events(&transaction, EventSeq(batch.through.0 - kept))?;
                }
            }
        }
        let moved = self.ids.move_some(&transaction, self.options.recent_ids_max, column(batch.through))?;
        let place = (&*transaction, &*self.ids);
        let dropped = match batch.at {
            Some(at) => self.retention.drop_jobs(place, at, self.clock.monotonic())?,
            None => None,
        };
        let now = self.clock.monotonic();
        let of_namespaces = self.retention.drop_of_namespaces(place, batch.at, batch.through, now)?;
        transaction.commit().map_err(sql())?;
        self.ids.commit(&moved);
        if batch.erased {
            truncate_wal(&self.connection);
        }
        self.retention.dropped(dropped);
        self.retention.dropped_of_namespaces(of_namespaces);
        Ok(batch.through)
    }

    /// Syncs and then acknowledges the events. The state may drop jobs only after this.
    fn acknowledge(&mut self, written: EventSeq) -> Result<(), HistoryError> {
        let start = self.clock.monotonic();
        self.sync()?;
        (self.observe)(Progress::Synced { took: self.clock.monotonic().saturating_sub(start) });
        self.synced.send_replace(written);
        Ok(())
    }

    /// Syncs the write-ahead file through a second descriptor. This is safe because SQLite holds no locks on that file,
    /// and the file stays the same while a connection is open.
    pub(crate) fn sync(&mut self) -> Result<(), HistoryError> {
        if let Some(file) = &self.wal {
            return file.sync_data().map_err(HistoryError::Sync);
        }
        let mut path = self.path.clone().into_os_string();
        path.push("-wal");
        let file = match File::open(&path) {
            Ok(file) => file,
            // Without a write-ahead file (on a file system without shared memory), SQLite syncs every commit itself.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(HistoryError::Sync(error)),
        };
        file.sync_data().map_err(HistoryError::Sync)?;
        if let Some(dir) = self.path.parent() {
            File::open(dir).and_then(|dir| dir.sync_all()).map_err(HistoryError::Sync)?;
        }
        self.wal = Some(file);
        Ok(())
    }
}

/// Empties the write-ahead file, which has earlier versions of what was erased. A reader can prevent that; then they are
/// overwritten when the file is used again.
fn truncate_wal(connection: &Connection) {
    let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    if !matches!(busy, Ok(0)) {
        tracing::warn!(?busy, "the write-ahead file of the history could not be emptied after an erasure");
    }
}

/// True if SQLite itself failed to sync at a checkpoint.
fn failed_to_sync(error: &HistoryError) -> bool {
    let HistoryError::Sql { source: rusqlite::Error::SqliteFailure(failure, _), .. } = error else { return false };
    [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_DIR_FSYNC].contains(&failure.extended_code)
}

/// The events of one transaction before they are written as blobs.
struct Batch<'a> {
    ids: &'a RecentIds,
    first: Option<EventSeq>,
    through: EventSeq,
    /// The time of the last event.
    at: Option<Timestamp>,
    blob: Vec<u8>,
    /// True if something was erased.
    erased: bool,
    /// What its jobs add to the totals.
    totals: Sums,
}

impl<'a> Batch<'a> {
    /// Continues after `written`.
    fn new(ids: &'a RecentIds, written: EventSeq) -> Self {
        Self { ids, first: None, through: written, at: None, blob: Vec::new(), erased: false, totals: Sums::default() }
    }

    fn event(
        &mut self,
        connection: &Connection,
        insert: &mut rusqlite::CachedStatement<'_>,
        event: &EventRecord,
    ) -> Result<(), HistoryError> {
        if event.seq <= self.through {
            return Ok(());
        }
        if event.seq != self.through.next() {
            // Events were missed without a resync. They are recorded as a gap, so that the range is not taken as
            // complete.
            self.flush(connection)?;
            open_gap(connection, Gap { after: self.through, through: EventSeq(event.seq.0 - 1) })?;
        }
        let full = self.first.is_some_and(|first| event.seq.0 - first.0 >= BLOB_EVENTS_MAX);
        if full || self.blob.len() >= BLOB_BYTES_MAX {
            self.flush(connection)?;
        }
        encode_event(event, &mut self.blob)?;
        self.first.get_or_insert(event.seq);
        (self.through, self.at) = (event.seq, Some(event.at));
        match &event.event {
            Event::Job { job, .. } if job.status.is_terminal() => {
                if insert_with(connection, insert, &mut self.totals, event.seq, job)? {
                    self.ids.add(id_column(job.id), column(event.seq));
                }
                Ok(())
            }
            Event::Erased { namespace, job } => {
                self.flush(connection)?;
                // What is deleted or replaced is overwritten in the file.
                let overwrite =
                    |on: bool| connection.pragma_update(None, "secure_delete", on).map_err(HistoryError::sql("erase"));
                overwrite(true)?;
                let erased = erase::erase(connection, self.ids, event.seq, namespace, *job);
                overwrite(false)?;
                self.erased = true;
                erased
            }
            _ => Ok(()),
        }
    }

    fn resync(
        &mut self,
        connection: &Connection,
        insert: &mut rusqlite::CachedStatement<'_>,
        ended: &[EndedJob],
        through: EventSeq,
    ) -> Result<(), HistoryError> {
        let known = self.through;
        for EndedJob { event, job } in ended.iter().filter(|ended| ended.event > known) {
            if insert_with(connection, insert, &mut self.totals, *event, job)? {
                self.ids.add(id_column(job.id), column(*event));
            }
        }
        if through > self.through {
            self.flush(connection)?;
            open_gap(connection, Gap { after: self.through, through })?;
            self.through = through;
        }
        Ok(())
    }

    /// Writes the current blob, if it has events.
    fn flush(&mut self, connection: &Connection) -> Result<(), HistoryError> {
        let Some(first) = self.first.take() else { return Ok(()) };
        insert_events(connection, first, self.through, &self.blob)?;
        self.blob.clear();
        Ok(())
    }
}

/// Writes events in one blob.
pub(crate) fn insert_events(
    connection: &Connection,
    first: EventSeq,
    last: EventSeq,
    body: &[u8],
) -> Result<(), HistoryError> {
    let key = column(last);
    connection
        .prepare_cached("INSERT OR IGNORE INTO events VALUES (?1, ?2, ?3, ?4)")
        .and_then(|mut insert| insert.execute(params![key, column(first), body, sum::of(key, body)]))
        .map(|_| ())
        .map_err(HistoryError::sql("write"))
}

const INSERT_JOB: &str = "INSERT OR IGNORE INTO jobs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

/// Writes the row of an ended job and all that belongs to it, its id as well.
pub(crate) fn insert_job(connection: &Connection, seq: EventSeq, job: &Job) -> Result<(), HistoryError> {
    let mut insert = connection.prepare_cached(INSERT_JOB).map_err(HistoryError::sql("write"))?;
    let mut totals = Sums::default();
    if insert_with(connection, &mut insert, &mut totals, seq, job)? {
        ids::write(connection, id_column(job.id), column(seq))?;
    }
    totals.write(connection)
}

/// Writes the row of an ended job, and all that belongs to it but its id. False if the row was there.
fn insert_with(
    connection: &Connection,
    insert: &mut rusqlite::CachedStatement<'_>,
    totals: &mut Sums,
    seq: EventSeq,
    job: &Job,
) -> Result<bool, HistoryError> {
    let body = encode_job(job);
    let inserted = insert
        .execute(params![
            column(seq),
            id_column(job.id),
            job.namespace.as_str(),
            job.agent.as_str(),
            job.status.as_str(),
            i64::try_from(job.queue_seq).unwrap_or(i64::MAX),
            job.created_at.0,
            job.completed_at.0,
            body,
            sum::of(column(seq), &body),
        ])
        .map_err(HistoryError::sql("write"))?;
    if inserted == 0 {
        // It is already stored, with all that follows from it.
        return Ok(false);
    }
    refer(connection, column(seq), job)?;
    totals.add(connection, column(seq), job)?;
    index(connection, job)?;
    Ok(true)
}

fn open_gap(connection: &Connection, gap: Gap) -> Result<(), HistoryError> {
    connection
        .execute("INSERT INTO gaps VALUES (?1, ?2)", [column(gap.after), column(gap.through)])
        .map(|_| ())
        .map_err(HistoryError::sql("write"))
}

fn len(input: &Input) -> usize {
    match input {
        Input::Events(events) => events.len(),
        Input::Resync { ended, .. } => ended.len(),
        // Each counts as a full transaction.
        Input::Fill { .. } => EVENTS_MAX,
        Input::GiveUp { .. } | Input::Keep(_) | Input::Close => 0,
    }
}
