//! History: every ended job and its events, kept after the state has dropped them.
//!
//! Every controller projects the state's events into an embedded SQL file of its own. The file can be rebuilt, no
//! replicated code reads it, and it may lag. A job leaves the state only when a majority of the controllers has
//! confirmed that its history has it on disk ([`History::synced`]). This crate owns the file's tables and nothing else;
//! reads look into the state first, then here.
//!
//! A live job has no row, because the state holds it. Its row is written once, when it ends, keyed by the event that
//! ended it.
//!
//! Events that this member did not see, because its state came as a snapshot, form a [`Gap`]. It is stored on disk and
//! filled from the front with [`Part`]s of another member's history.

mod copy;
mod erase;
mod error;
mod fill;
mod gap;
mod ids;
mod reader;
mod record;
mod retention;
mod rows;
mod schema;
mod sqlite;
mod sum;
mod totals;
mod words;
mod writer;

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use atlas_types::{AgentName, Digest, Event, EventRecord, EventSeq, Job, JobId, JobStatus, Namespace, Timestamp};
use tokio::sync::watch;

pub use copy::rebind;
pub use error::HistoryError;
pub use gap::{Gap, Part, Record};
pub use sqlite::{Options, SqliteHistory};
pub use totals::{AgentTotals, End, Totals};
pub use words::{has_words, words};
pub use writer::Progress;

/// A boxed answer of a history.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, HistoryError>> + Send + 'a>>;

/// Stores events and answers queries about ended jobs.
pub trait History: Send + Sync + 'static {
    /// Queues the events of one applied entry. Completes when they are queued. Events that are already stored are
    /// skipped.
    fn append(&self, events: Arc<[EventRecord]>) -> Answer<'_, ()>;

    /// Continues after missed events, with data from the state: its ended jobs, and the last event that the state
    /// includes. The missed events become a gap, which readers are told about.
    fn resync(&self, ended: Vec<EndedJob>, through: EventSeq) -> Answer<'_, ()>;

    /// The last event that is durable on disk.
    fn synced(&self) -> watch::Receiver<EventSeq>;

    /// The gaps, in order. Updated as soon as a gap is written.
    fn gaps(&self) -> watch::Receiver<Arc<[Gap]>>;

    /// The part that this history can give for the gap of another, from the gap's beginning: about `bytes_max`, or
    /// empty if this history does not have the events either.
    fn part(&self, gap: Gap, bytes_max: usize) -> Answer<'_, Part>;

    /// Fills a gap from its beginning. Completes when the part is written. [`HistoryError::Part`] if the part does not
    /// fit or has holes.
    fn fill(&self, gap: Gap, part: Part) -> Answer<'_, ()>;

    /// Abandons a gap whose events no member has.
    fn give_up(&self, gap: Gap) -> Answer<'_, ()>;

    /// The artifacts that ended jobs refer to, each with the event that ended its job. Returns those after event
    /// `after` in order, about `limit`.
    fn artifacts(&self, after: EventSeq, limit: usize) -> Answer<'_, Vec<(EventSeq, Digest)>>;

    /// For each of these artifacts, whether an ended job refers to it.
    fn refers(&self, digests: Vec<Digest>) -> Answer<'_, Vec<bool>>;

    /// One job that ended.
    fn job(&self, id: JobId) -> Answer<'_, Option<Arc<Job>>>;

    /// At most `limit` ended jobs whose ids lie in a range, by id.
    fn jobs_between(&self, first: JobId, last: JobId, limit: usize) -> Answer<'_, Vec<JobId>>;

    /// Ended jobs, newest submission first. Returns their keys, not their content.
    fn list(&self, filter: JobFilter) -> Answer<'_, Vec<JobKey>>;

    /// The jobs that these events ended, in this order. Jobs that are not stored are left out.
    fn ended_by(&self, events: Vec<EventSeq>) -> Answer<'_, Vec<Arc<Job>>>;

    /// Events after `after`, in order, at most `limit`; [`HistoryError::Gone`] if the first of them was dropped.
    fn events(&self, after: EventSeq, limit: usize) -> Answer<'_, Vec<StoredEvent>>;

    /// What all ended jobs add up to, also those that retention has removed, as of one moment.
    fn totals(&self) -> Answer<'_, Totals>;

    /// Sets how much of each namespace is kept. Older ended jobs are removed with the next writes.
    fn keep(&self, kept: Arc<[KeepRule]>) -> Answer<'_, ()>;

    /// Writes a copy of everything up to `through` to a file that must not exist.
    fn copy(&self, to: PathBuf, through: EventSeq) -> Answer<'_, ()>;

    /// Writes and syncs all queued data, and closes the file. Later data is not accepted.
    fn close(&self) -> Answer<'_, ()>;
}

/// An ended job and the event that ended it.
#[derive(Debug, Clone)]
pub struct EndedJob {
    pub event: EventSeq,
    pub job: Arc<Job>,
}

/// How much of a namespace is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepRule {
    pub namespace: Namespace,
    /// How many ended jobs; none for all.
    pub jobs_max: Option<u64>,
    /// For how long, by event times as far as this process has run; none for ever.
    pub age_max: Option<Duration>,
}

/// Selects ended jobs.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    /// The namespace; none for all.
    pub namespace: Option<Namespace>,
    pub status: Option<JobStatus>,
    pub agent: Option<AgentName>,
    /// Submitted at or after.
    pub since: Option<Timestamp>,
    /// Submitted at or before.
    pub until: Option<Timestamp>,
    /// Submitted before the job with this place in the order of submission.
    pub before: Option<u64>,
    /// With all these labels.
    pub labels: Vec<(String, String)>,
    /// With all these [`words`] in their errors and labels.
    pub words: Vec<String>,
    /// Completed and failed jobs by their end, the latest first, instead of by submission.
    pub by_end: bool,
    /// The most jobs to return.
    pub limit: usize,
}

/// The key of an ended job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobKey {
    /// The event that ended it.
    pub event: EventSeq,
    /// The job.
    pub id: JobId,
    /// Its position in the order of submission.
    pub queue_seq: u64,
}

/// An event as stored in the history.
#[derive(Debug, Clone)]
pub struct StoredEvent {
    /// Its number.
    pub seq: EventSeq,
    /// When it happened.
    pub at: Timestamp,
    /// The event. None if it was written by an old program that kept only the number, or by a newer program than this
    /// one.
    pub event: Option<Event>,
}
