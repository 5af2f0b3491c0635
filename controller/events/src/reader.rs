//! Events for readers: the latest in memory, older ones from history, without a gap between the two.
//!
//! A reader is a cursor, not a buffer: a slow reader delays nobody and costs only its position. A reader that is behind
//! the events in memory reads from the history, unless it prefers to be notified ([`Next::Behind`]).

use std::sync::Arc;
use std::time::Duration;

use atlas_desk::{Caller, Consistency, Error};
use atlas_history::StoredEvent;
use atlas_records::{Shown, View};
use atlas_types::{
    Attempt, Event, EventRecord, EventSeq, Job, JobChange, JobId, JobStatus, Micros, Namespace, Timestamp,
};
use tokio::sync::watch;

use crate::{EventFilter, Events};

/// A change of a job.
#[derive(Debug, Clone)]
pub struct Change {
    /// The event's number.
    pub seq: EventSeq,
    /// The time of the event.
    pub at: Timestamp,
    /// The kind of change.
    pub change: JobChange,
    /// The previous status.
    pub old_status: JobStatus,
    /// The job after the change.
    pub job: Arc<Job>,
}

impl Change {
    /// True if clients of Atlas for Python see the change. They see only changes of the status.
    pub fn is_transition(&self) -> bool {
        self.old_status != self.job.status
    }

    fn of(record: &EventRecord) -> Option<Self> {
        let Event::Job { change, old_status, job } = &record.event else { return None };
        Some(Self { seq: record.seq, at: record.at, change: *change, old_status: *old_status, job: job.clone() })
    }
}

/// The next result of a reader.
#[derive(Debug)]
pub enum Next<T = Change> {
    /// Changes, in order.
    Changes(Vec<T>),
    /// The reader has fallen behind the events in memory. Only for readers with `live_only`.
    Behind,
    /// The stream has ended: the controller stops, or the reader reached its last event.
    Over,
}

/// The events that a reader follows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Follow {
    /// Only changes of this job; none for all jobs.
    pub job: Option<JobId>,
    /// Starts after this event; none starts now.
    pub after: Option<EventSeq>,
    /// Ends after this event; none continues for ever.
    pub through: Option<EventSeq>,
    /// Returns [`Next::Behind`] instead of reading from the history.
    pub live_only: bool,
}

/// A cursor in the stream of events.
pub struct Reader {
    events: Events,
    latest: watch::Receiver<EventSeq>,
    cursor: EventSeq,
    through: Option<EventSeq>,
    /// The reader's namespace. Jobs and agents of other namespaces are not shown.
    namespace: Namespace,
    job: Option<JobId>,
    live_only: bool,
}

/// The most changes returned at once.
const CHUNK: usize = 256;
/// The interval at which a reader checks whether the history has received the events that are no longer in memory.
const HISTORY_INTERVAL: Duration = Duration::from_millis(20);

impl Events {
    /// Opens a reader. [`Error::EventsGone`] if the requested events were dropped.
    pub async fn follow(&self, caller: &Caller, follow: Follow) -> Result<Reader, Error> {
        let latest = self.log.latest();
        // Some applied events may not have been delivered to this log yet.
        let now = self.desk.handle.applied().event_seq().max(*latest.borrow());
        // A cursor after the last event comes from another cluster or is invalid. The reader then starts now.
        let cursor = follow.after.map_or(now, |after| after.min(now));
        let Follow { job, through, live_only, .. } = follow;
        let namespace = caller.namespace.clone();
        let reader = Reader { events: self.clone(), latest, cursor, through, namespace, job, live_only };
        if !reader.events.log.reaches(cursor) {
            reader.events.desk.archived_events(cursor, 1).await?;
        }
        reader.events.desk.metrics.subscriber_count.inc();
        Ok(reader)
    }
}

/// A job's stream: its changes so far, and a reader for later ones.
pub struct JobStream {
    /// The submission and the changes of status so far, derived from the job's current record. Lost attempts are not
    /// included.
    pub so_far: Vec<Change>,
    /// A reader for later changes.
    pub reader: Reader,
}

impl Events {
    /// A change with the data for its frame.
    pub async fn show_change(&self, change: &Change) -> Result<Shown, Error> {
        self.records.show(change.job.clone(), View::Plain, None).await
    }

    /// Opens the stream of one job.
    pub async fn follow_job(&self, caller: &Caller, id: JobId, live_only: bool) -> Result<JobStream, Error> {
        let state = self.desk.state(Consistency::Linearizable).await?;
        let seq = state.event_seq();
        let job = self.desk.job_in(caller, &state, id).await?;
        let follow = Follow { job: Some(id), after: Some(seq), live_only, ..Follow::default() };
        let reader = self.follow(caller, follow).await?;
        Ok(JobStream { so_far: told(&job, seq), reader })
    }
}

/// The changes of a job, derived from its record.
fn told(job: &Arc<Job>, seq: EventSeq) -> Vec<Change> {
    let earlier = |status, started_at| {
        let mut earlier = Job { status, started_at, completed_at: Timestamp::NOT_YET, ..(**job).clone() };
        (earlier.output, earlier.failure, earlier.warmup, earlier.execution) = (None, None, Micros(0), Micros(0));
        earlier.warm = false;
        if status == JobStatus::Pending {
            (earlier.node, earlier.lease, earlier.attempt) = (None, None, Attempt::default());
            earlier.carried = None;
        }
        Arc::new(earlier)
    };
    let change = |change, at, old_status, job| Change { seq, at, change, old_status, job };
    let pending = earlier(JobStatus::Pending, Timestamp::NOT_YET);
    let mut told = vec![change(JobChange::Submitted, job.created_at, JobStatus::Pending, pending)];
    if job.status != JobStatus::Pending && job.started_at != Timestamp::NOT_YET {
        let running = earlier(JobStatus::Running, job.started_at);
        let began = if job.carried.is_some() { JobChange::Carried } else { JobChange::Granted };
        told.push(change(began, job.started_at, JobStatus::Pending, running));
    }
    if job.status.is_terminal() {
        let old_status = if told.len() > 1 { JobStatus::Running } else { JobStatus::Pending };
        told.push(change(JobChange::Ended, job.completed_at, old_status, job.clone()));
    }
    told
}

impl Reader {
    /// Waits for the next changes of jobs.
    pub async fn next(&mut self) -> Result<Next, Error> {
        let wanted = self.job;
        self.advance(|event| Change::of(event).filter(|change| wanted.is_none_or(|job| change.job.id == job))).await
    }

    /// Waits for the next events that match a filter.
    pub async fn next_events(&mut self, filter: &EventFilter) -> Result<Next<EventRecord>, Error> {
        self.advance(|event| filter.admits(&event.event).then(|| event.clone())).await
    }

    /// The changes of jobs among the next events, without waiting for any. There can be none, if the events are others.
    pub async fn read(&mut self) -> Result<Next, Error> {
        let wanted = self.job;
        self.look(|event| Change::of(event).filter(|change| wanted.is_none_or(|job| change.job.id == job))).await
    }

    /// Waits until there are events after the last one that was examined. False once the controller stops.
    pub async fn wait(&mut self) -> bool {
        let cursor = self.cursor;
        self.latest.wait_for(|latest| *latest > cursor).await.is_ok()
    }

    async fn advance<T>(&mut self, pick: impl Fn(&EventRecord) -> Option<T>) -> Result<Next<T>, Error> {
        loop {
            let before = self.cursor;
            match self.look(&pick).await? {
                Next::Changes(changes) if changes.is_empty() => {}
                next => return Ok(next),
            }
            if self.through.is_some_and(|through| self.cursor >= through) {
                return Ok(Next::Over);
            }
            if self.cursor == before && self.events.log.reaches(before) && self.latest.changed().await.is_err() {
                return Ok(Next::Over);
            }
        }
    }

    /// Examines the next events. If they are not there yet although others left the memory, it waits a moment.
    async fn look<T>(&mut self, pick: impl Fn(&EventRecord) -> Option<T>) -> Result<Next<T>, Error> {
        let namespace = self.namespace.clone();
        let pick = |event: &EventRecord| {
            namespace_of(&event.event).is_none_or(|of| *of == namespace).then(|| pick(event)).flatten()
        };
        self.latest.borrow_and_update();
        let (changes, cursor) = match self.events.log.after(self.cursor, CHUNK, pick) {
            Some(found) => found,
            None if self.live_only => {
                self.events.desk.metrics.subscriber_drops.inc();
                return Ok(Next::Behind);
            }
            None => self.read_history(CHUNK, &pick).await?,
        };
        if cursor == self.cursor && !self.events.log.reaches(cursor) {
            // The events that left the memory are not in the history yet, because its writer is slightly behind.
            self.events.desk.env.clock.sleep(HISTORY_INTERVAL).await;
        }
        self.cursor = cursor;
        Ok(Next::Changes(changes))
    }

    /// The number of the last event that was examined.
    pub fn cursor(&self) -> EventSeq {
        self.cursor
    }

    /// The last event that erased others. What was made of events that were read before it has to be forgotten.
    pub fn erased(&self) -> EventSeq {
        self.events.log.erased()
    }

    /// Continues after an event, because the changes until there are known.
    pub fn skip(&mut self, through: EventSeq) {
        self.cursor = self.cursor.max(through);
    }

    /// The namespace whose changes it reads.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    async fn read_history<T>(
        &self,
        limit: usize,
        pick: impl Fn(&EventRecord) -> Option<T>,
    ) -> Result<(Vec<T>, EventSeq), Error> {
        let events = self.events.desk.archived_events(self.cursor, limit).await?;
        let cursor = events.last().map_or(self.cursor, |event| event.seq);
        let known = events.into_iter().filter_map(|StoredEvent { seq, at, event }| {
            let event = event?;
            pick(&EventRecord { seq, at, event })
        });
        Ok((known.collect(), cursor))
    }
}

/// The namespace of an event's subject. None for a subject that belongs to the whole cluster.
fn namespace_of(event: &Event) -> Option<&Namespace> {
    match event {
        Event::Job { job, .. } => Some(&job.namespace),
        Event::Agent { agent } | Event::AgentDeleted { agent } => Some(&agent.namespace),
        Event::ObjectPut { object } | Event::ObjectDeleted { object } => Some(&object.key.namespace),
        Event::Run { run, .. } => Some(&run.namespace),
        Event::Erased { namespace, .. } => Some(namespace),
        Event::QuestionAsked { question } | Event::QuestionEnded { question } => Some(&question.namespace),
        // Events of steps and messages contain only the job's id, which cannot be guessed.
        Event::StepsRecorded { .. } | Event::StepsFolded { .. } | Event::MessageDelivered { .. } => None,
        Event::Node { .. } | Event::NodeRemoved { .. } | Event::Configured { .. } => None,
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.events.desk.metrics.subscriber_count.dec();
    }
}
