//! The embedded SQL file: one writer thread, readers on the pool for blocking work.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atlas_env::Env;
use atlas_types::{Digest, EventRecord, EventSeq, Job, JobId};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot, watch};

use crate::fill::Filling;
use crate::ids::{self, RecentIds};
use crate::retention::Retention;
use crate::writer::{Input, Progress, Writer};
use crate::{
    Answer, EndedJob, Gap, History, HistoryError, JobFilter, JobKey, KeepRule, Part, StoredEvent, Totals, copy, gap,
    reader, schema, totals,
};

/// Options of a history file.
#[derive(Debug, Clone)]
pub struct Options {
    /// The file.
    pub path: PathBuf,
    /// The number of latest events that stay readable.
    pub events_kept: u64,
    /// How long an ended job is kept, measured by event times as far as this process has run; none for ever.
    pub jobs_kept_for: Option<Duration>,
    /// The longest time between writing an event and syncing it.
    pub sync_interval: Duration,
    /// How long the writer gathers more events before a transaction.
    pub gather_interval: Duration,
    /// The most queued entries that wait for the writer.
    pub queue_max: usize,
    /// How many ids of the latest jobs are in memory and not in the file.
    pub recent_ids_max: usize,
}

impl Options {
    /// The defaults for a file.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            events_kept: 1_000_000,
            jobs_kept_for: None,
            sync_interval: Duration::from_millis(200),
            gather_interval: Duration::from_millis(40),
            queue_max: 1_024,
            recent_ids_max: ids::RECENT_MAX,
        }
    }
}

/// A history in an embedded SQL file. Dropping the last clone stops the writer after it has written all queued data.
#[derive(Clone)]
pub struct SqliteHistory {
    inputs: mpsc::Sender<Input>,
    synced: watch::Receiver<EventSeq>,
    gaps: watch::Receiver<Arc<[Gap]>>,
    readers: Arc<Readers>,
    ids: Arc<RecentIds>,
    env: Env,
}

/// Idle read connections.
struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

/// The most idle connections that are kept. Further concurrent readers open and close their own.
const READERS_IDLE_MAX: usize = 2;

impl SqliteHistory {
    /// Opens or creates the file and starts its writer. Blocking. `observe` receives the durations of writes.
    pub fn open(options: Options, env: Env, observe: impl Fn(Progress) + Send + 'static) -> Result<Self, HistoryError> {
        let path = options.path.clone();
        let connection = schema::open_writer(&path)?;
        let watermark: i64 = connection
            .query_row("SELECT watermark FROM progress", [], |row| row.get(0))
            .map_err(HistoryError::sql("read"))?;
        let (found, gaps) = watch::channel(gap::load(&connection)?.into());
        let (inputs, receiver) = mpsc::channel(options.queue_max);
        // Data from an earlier process is synced before it is reported as synced, because that process may have ended
        // before its last sync.
        let (announce, synced) = watch::channel(EventSeq(watermark.unsigned_abs()));
        let retention = Retention::new(options.jobs_kept_for);
        let ids = Arc::new(RecentIds::load(&connection)?);
        let mut writer = Writer {
            connection,
            path: path.clone(),
            options,
            clock: env.clock.clone(),
            inputs: receiver,
            synced: announce,
            gaps: found,
            observe: Box::new(observe),
            wal: None,
            retention,
            ids: Arc::clone(&ids),
        };
        writer.sync()?;
        env.thread("history", move || writer.run()).map_err(HistoryError::Sync)?;
        let readers = Arc::new(Readers { path, idle: Mutex::default() });
        Ok(Self { inputs, synced, gaps, readers, ids, env })
    }

    /// Assigns the file to a cluster, or returns [`HistoryError::OtherCluster`] if it belongs to another one. Blocking.
    pub fn bind(&self, cluster: u128) -> Result<(), HistoryError> {
        schema::bind(&self.readers.path, cluster)
    }

    /// Sends an input to the writer and waits until it is written.
    async fn written(&self, input: impl FnOnce(oneshot::Sender<()>) -> Input) -> Result<(), HistoryError> {
        let (done, written) = oneshot::channel();
        self.inputs.send(input(done)).await.map_err(|_| HistoryError::Stopped)?;
        written.await.map_err(|_| HistoryError::Stopped)
    }

    fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, HistoryError> + Send + 'static,
    ) -> Answer<'_, T> {
        let readers = self.readers.clone();
        let task = self.env.spawn_blocking("history-read", move || {
            let connection = readers.take()?;
            let answer = work(&connection);
            readers.give_back(connection);
            answer
        });
        Box::pin(async move { task.join().await.map_err(|_| HistoryError::Stopped)? })
    }
}

impl Readers {
    fn take(&self) -> Result<Connection, HistoryError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| schema::open_reader(&self.path), Ok)
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < READERS_IDLE_MAX {
            idle.push(connection);
        }
    }
}

impl History for SqliteHistory {
    fn append(&self, events: Arc<[EventRecord]>) -> Answer<'_, ()> {
        Box::pin(async move { self.inputs.send(Input::Events(events)).await.map_err(|_| HistoryError::Stopped) })
    }

    fn resync(&self, ended: Vec<EndedJob>, through: EventSeq) -> Answer<'_, ()> {
        let input = Input::Resync { ended, through };
        Box::pin(async move { self.inputs.send(input).await.map_err(|_| HistoryError::Stopped) })
    }

    fn synced(&self) -> watch::Receiver<EventSeq> {
        self.synced.clone()
    }

    fn gaps(&self) -> watch::Receiver<Arc<[Gap]>> {
        self.gaps.clone()
    }

    fn part(&self, gap: Gap, bytes_max: usize) -> Answer<'_, Part> {
        self.read(move |connection| gap::part(connection, gap, bytes_max))
    }

    fn fill(&self, gap: Gap, part: Part) -> Answer<'_, ()> {
        let check = self.env.spawn_blocking("history-check", move || Filling::check(gap, part));
        Box::pin(async move {
            let filling = check.join().await.map_err(|_| HistoryError::Stopped)??;
            self.written(|done| Input::Fill { filling: Box::new(filling), done }).await
        })
    }

    fn give_up(&self, gap: Gap) -> Answer<'_, ()> {
        Box::pin(self.written(move |done| Input::GiveUp { gap, done }))
    }

    fn artifacts(&self, after: EventSeq, limit: usize) -> Answer<'_, Vec<(EventSeq, Digest)>> {
        self.read(move |connection| reader::artifacts(connection, after, limit))
    }

    fn refers(&self, digests: Vec<Digest>) -> Answer<'_, Vec<bool>> {
        self.read(move |connection| reader::refers(connection, &digests))
    }

    fn copy(&self, to: PathBuf, through: EventSeq) -> Answer<'_, ()> {
        self.read(move |connection| copy::copy(connection, &to, through))
    }

    fn job(&self, id: JobId) -> Answer<'_, Option<Arc<Job>>> {
        let ids = Arc::clone(&self.ids);
        self.read(move |connection| Ok(reader::job(connection, &ids, id)?.map(Arc::new)))
    }

    fn jobs_between(&self, first: JobId, last: JobId, limit: usize) -> Answer<'_, Vec<JobId>> {
        let ids = Arc::clone(&self.ids);
        self.read(move |connection| reader::jobs_between(connection, &ids, (first, last), limit))
    }

    fn list(&self, filter: JobFilter) -> Answer<'_, Vec<JobKey>> {
        self.read(move |connection| reader::list(connection, &filter))
    }

    fn ended_by(&self, events: Vec<EventSeq>) -> Answer<'_, Vec<Arc<Job>>> {
        self.read(move |connection| Ok(reader::ended_by(connection, &events)?.into_iter().map(Arc::new).collect()))
    }

    fn events(&self, after: EventSeq, limit: usize) -> Answer<'_, Vec<StoredEvent>> {
        self.read(move |connection| reader::events(connection, after, limit))
    }

    fn totals(&self) -> Answer<'_, Totals> {
        self.read(totals::read)
    }

    fn keep(&self, kept: Arc<[KeepRule]>) -> Answer<'_, ()> {
        Box::pin(async move { self.inputs.send(Input::Keep(kept)).await.map_err(|_| HistoryError::Stopped) })
    }

    fn close(&self) -> Answer<'_, ()> {
        let mut synced = self.synced.clone();
        Box::pin(async move {
            // If the writer has already ended, the file is closed.
            let _ = self.inputs.send(Input::Close).await;
            while synced.changed().await.is_ok() {}
            Ok(())
        })
    }
}

#[cfg(test)]
mod erase_tests;
#[cfg(test)]
mod gap_tests;
#[cfg(test)]
mod retention_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod totals_tests;
