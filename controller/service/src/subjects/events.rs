//! Events.

use std::sync::Arc;

use atlas_events::{Change, Follow, JobStream, Reader};
use atlas_raft::ProposeError;
use atlas_records::Shown;
use atlas_types::{Event, EventRecord, EventSeq, JobId, Namespace, Object, Observation};

use crate::{Caller, Error, Service};

/// Readers.
impl Service {
    /// Opens a reader. [`Error::EventsGone`] if the requested events were dropped.
    pub async fn follow(&self, caller: &Caller, follow: Follow) -> Result<Reader, Error> {
        self.shared.events.follow(caller, follow).await
    }

    /// A change with the data for its frame.
    pub async fn show_change(&self, change: &Change) -> Result<Shown, Error> {
        self.shared.events.show_change(change).await
    }

    /// Opens the stream of one job.
    pub async fn follow_job(&self, caller: &Caller, id: JobId, live_only: bool) -> Result<JobStream, Error> {
        self.shared.events.follow_job(caller, id, live_only).await
    }

    /// Appends an event as JSON. Events of jobs have the members of the frames of `GET /api/events?view=full`.
    pub async fn write_event(&self, out: &mut Vec<u8>, record: &EventRecord) -> Result<(), Error> {
        self.shared.events.write_event(out, record).await
    }
}

/// What the delivery to receivers outside the cluster needs.
impl Service {
    /// The webhooks of all namespaces as this controller has applied them, the oldest first.
    pub fn webhooks(&self) -> Vec<Arc<Object>> {
        self.shared.events.webhooks()
    }

    /// A reader of the events that a namespace may see. [`Error::EventsGone`] if events after `after` were dropped.
    pub async fn follow_namespace(&self, namespace: &Namespace, after: EventSeq) -> Result<Reader, Error> {
        self.shared.events.follow_namespace(namespace, after).await
    }

    /// Whether a namespace may see an event that a reader of the namespace returned. Events of steps and messages name
    /// only a job, so its namespace is looked up.
    pub async fn is_seen_in(&self, event: &Event, namespace: &Namespace) -> Result<bool, Error> {
        self.shared.events.is_seen_in(event, namespace).await
    }

    /// Appends an event as JSON of at most `bytes_max` bytes. A larger one has only the members that say what
    /// happened, and `"truncated": true`.
    pub async fn write_event_within(
        &self,
        out: &mut Vec<u8>,
        record: &EventRecord,
        bytes_max: usize,
    ) -> Result<(), Error> {
        self.shared.events.write_event_within(out, record, bytes_max).await
    }

    /// Notes statuses of objects. Refused unless this member leads: a former leader must not overwrite what its
    /// successor noted.
    pub async fn observe_objects(&self, observations: Vec<Observation>) -> Result<(), ProposeError> {
        self.shared.observe_objects(observations).await.map(drop)
    }
}
