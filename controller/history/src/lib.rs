//! History: every ended job and its events, kept after the state has dropped them.
//!
//! Every controller projects the state's events into an embedded SQL file of its own. It can be rebuilt, nothing replicated reads
//! it, and it may lag: a job leaves the state only when a majority of the controllers has confirmed that its history has it on disk
//! ([`History::synced`]). This crate owns the file's tables and nothing else; reads look into the state first, then here.
//!
//! A live job has no row: the state has it. Its row is written once, when it ends, under the number of the event that ended it.
//!
//! Events that this member did not see, because its state came as a snapshot, form a [`Gap`]. It is stored on disk and
//! filled from the front with [`Part`]s of another member's history.

mod copy;
mod error;
mod fill;
mod gap;
mod reader;
mod record;
mod retention;
mod schema;
mod sqlite;
mod sum;
mod writer;

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use atlas_types::{AgentName, Digest, Event, EventRecord, EventSeq, Job, JobId, JobStatus, Namespace, Timestamp};
use tokio::sync::watch;

pub use copy::rebind;
pub use error::HistoryError;
pub use gap::{Gap, Part, Record};
pub use sqlite::{Options, SqliteHistory};
pub use writer::Progress;

/// A boxed answer of a history.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, HistoryError>> + Send + 'a>>;

/// Takes events in and answers questions about jobs that have ended.
pub trait History: Send + Sync + 'static {
    /// Hands over the events of one applied entry; completes when they are queued. What is known already is skipped.
    fn append(&self, events: Arc<[EventRecord]>) -> Answer<'_, ()>;

    /// Goes on behind events that were missed, with a view of the state: its ended jobs, and the last event that they include. What
    /// was missed is a gap from then on, and readers are told so.
    fn resync(&self, ended: Vec<Ended>, through: EventSeq) -> Answer<'_, ()>;

    /// The last event that is on disk.
    fn synced(&self) -> watch::Receiver<EventSeq>;

    /// The events that were missed, in order; they are known as soon as they are written.
    fn gaps(&self) -> watch::Receiver<Arc<[Gap]>>;

    /// What this history has of a gap of another one, from its front: about `bytes_max`, and nothing if it lacks that itself.
    fn part(&self, gap: Gap, bytes_max: usize) -> Answer<'_, Part>;

    /// Fills a gap from the front; complete when it is written. [`HistoryError::Part`] if the part does not fit or is not dense.
    fn fill(&self, gap: Gap, part: Part) -> Answer<'_, ()>;

    /// Abandons a gap: no member has its events.
    fn give_up(&self, gap: Gap) -> Answer<'_, ()>;

    /// The artifacts that ended jobs refer to, each with the event that ended its job: those behind `after`, in order, about
    /// `limit`.
    fn artifacts(&self, after: EventSeq, limit: usize) -> Answer<'_, Vec<(EventSeq, Digest)>>;

    /// Which of these artifacts an ended job refers to.
    fn refers(&self, digests: Vec<Digest>) -> Answer<'_, Vec<bool>>;

    /// One job that ended.
    fn job(&self, id: JobId) -> Answer<'_, Option<Arc<Job>>>;

    /// At most `limit` ended jobs whose ids lie in a range, by id.
    fn jobs_between(&self, first: JobId, last: JobId, limit: usize) -> Answer<'_, Vec<JobId>>;

    /// Ended jobs, newest submission first: where they are, not what they are.
    fn list(&self, filter: JobFilter) -> Answer<'_, Vec<Listed>>;

    /// The jobs that these events ended, in this order; those that are not here are left out.
    fn ended_by(&self, events: Vec<EventSeq>) -> Answer<'_, Vec<Arc<Job>>>;

    /// Events after `after`, in order, at most `limit`; [`HistoryError::Gone`] if the first of them was dropped.
    fn events(&self, after: EventSeq, limit: usize) -> Answer<'_, Vec<StoredEvent>>;

    /// Writes a copy of what is here up to `through` to a file that does not exist.
    fn copy(&self, to: PathBuf, through: EventSeq) -> Answer<'_, ()>;

    /// Writes and syncs what was handed over, and closes the file. Nothing is taken in after it.
    fn close(&self) -> Answer<'_, ()>;
}

/// An ended job and the event that ended it.
#[derive(Debug, Clone)]
pub struct Ended {
    pub event: EventSeq,
    pub job: Arc<Job>,
}

/// Which ended jobs are wanted.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    /// Of this namespace; none is all.
    pub namespace: Option<Namespace>,
    pub status: Option<JobStatus>,
    pub agent: Option<AgentName>,
    /// Submitted at or after.
    pub since: Option<Timestamp>,
    /// Submitted at or before.
    pub until: Option<Timestamp>,
    /// At most so many.
    pub limit: usize,
}

/// Where an ended job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// The event that ended it.
    pub event: EventSeq,
    /// The job.
    pub id: JobId,
    /// Its place in the order of submission.
    pub queue_seq: u64,
}

/// An event as history has it.
#[derive(Debug, Clone)]
pub struct StoredEvent {
    /// Its number.
    pub seq: EventSeq,
    /// When it happened.
    pub at: Timestamp,
    /// What happened; none if it was written by a program that kept only the number, or by one newer than this.
    pub event: Option<Event>,
}
