//! What the delivery of events to receivers outside the cluster needs: the webhooks, their events, and their statuses.

use std::sync::Arc;

use atlas_desk::{Error, json, on_behalf};
use atlas_types::{Event, EventRecord, EventSeq, Namespace, Object, ObjectKind, Payload, PayloadBody};

use crate::{EventLabel, Events, Follow, Reader};

impl Events {
    /// The webhooks of all namespaces as this controller has applied them, the oldest first.
    pub fn webhooks(&self) -> Vec<Arc<Object>> {
        let Ok(kind) = ObjectKind::new("webhook") else { return Vec::new() };
        self.desk.handle.applied().objects_of_kind(&kind).cloned().collect()
    }

    /// A reader of the events that a namespace may see. [`Error::EventsGone`] if events after `after` were dropped.
    pub async fn follow_namespace(&self, namespace: &Namespace, after: EventSeq) -> Result<Reader, Error> {
        let caller = on_behalf::cluster_in(namespace.clone());
        self.follow(&caller, Follow { after: Some(after), ..Follow::default() }).await
    }

    /// Whether a namespace may see an event that a reader of the namespace returned. Events of steps and messages name
    /// only a job, so its namespace is looked up.
    pub async fn is_seen_in(&self, event: &Event, namespace: &Namespace) -> Result<bool, Error> {
        let job = match event {
            Event::StepsRecorded { job, .. } | Event::StepsFolded { job, .. } | Event::MessageDelivered { job, .. } => {
                *job
            }
            _ => return Ok(true),
        };
        let state = self.desk.handle.applied();
        let found = match state.job(job) {
            Some(job) => Some(Arc::clone(job)),
            None => self.desk.archived(&state, job).await?,
        };
        Ok(found.is_some_and(|job| job.namespace == *namespace))
    }

    /// Appends an event as JSON of at most `bytes_max` bytes. A larger one has only the members that say what
    /// happened, and `"truncated": true`.
    pub async fn write_event_within(
        &self,
        out: &mut Vec<u8>,
        record: &EventRecord,
        bytes_max: usize,
    ) -> Result<(), Error> {
        // Large payloads are not even loaded.
        if payload_bytes(&record.event) <= bytes_max as u64 {
            let start = out.len();
            self.write_event(out, record).await?;
            if out.len() - start <= bytes_max {
                return Ok(());
            }
            out.truncate(start);
        }
        write_short(out, record);
        Ok(())
    }
}

fn payload_bytes(event: &Event) -> u64 {
    let Event::Job { job, .. } = event else { return 0 };
    let size = |payload: &Payload| match &payload.body {
        PayloadBody::Inline(bytes) => bytes.len() as u64,
        PayloadBody::Artifact { size_bytes, .. } => *size_bytes,
    };
    size(&job.input) + job.output.as_ref().map_or(0, size)
}

fn write_short(out: &mut Vec<u8>, record: &EventRecord) {
    let EventLabel { kind, change, name } = EventLabel::of(record);
    out.extend_from_slice(format!("{{\"event\":{},\"kind\":\"{}\",\"name\":", record.seq.0, kind.as_str()).as_bytes());
    json::string(out, &name);
    out.extend_from_slice(b",\"timestamp\":");
    json::time(out, record.at);
    out.extend_from_slice(format!(",\"change\":\"{change}\"").as_bytes());
    if let Event::Job { old_status, job, .. } = &record.event {
        out.extend_from_slice(b",\"agent_name\":");
        json::string(out, job.agent.as_str());
        let (old, new) = (old_status.as_str(), job.status.as_str());
        out.extend_from_slice(format!(",\"old_status\":\"{old}\",\"new_status\":\"{new}\"").as_bytes());
    }
    out.extend_from_slice(b",\"truncated\":true}");
}
