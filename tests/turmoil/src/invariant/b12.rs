//! First come, first served: no job is granted while an older one of the same agent and priority is queued.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::{Event, Job, JobChange, JobId, JobStatus, Reason};

use super::Invariant;
use crate::oracle::Facts;
use crate::seen::Seen;

/// The waiting jobs after the events seen so far. The state after an entry cannot be used: a job that loses its lease
/// in the same entry in which a younger job is granted waits after the entry, but did not wait when the younger job was
/// granted.
#[derive(Default)]
pub(crate) struct FirstComeFirstServed {
    waiting: BTreeMap<JobId, Arc<Job>>,
}

impl Invariant for FirstComeFirstServed {
    fn name(&self) -> &'static str {
        "B.12 first come, first served"
    }

    fn see(&mut self, seen: &Seen, _facts: &mut Facts) -> Result<(), String> {
        let Seen::Event { event, .. } = seen else { return Ok(()) };
        let Event::Job { change, job, .. } = &event.event else { return Ok(()) };
        if job.status == JobStatus::Pending {
            self.waiting.insert(job.id, job.clone());
        } else {
            self.waiting.remove(&job.id);
        }
        // A job that waited too long is reported as granted and ended, without using a place.
        if *change != JobChange::Granted || job.lease.is_none() {
            return Ok(());
        }
        let older = self.waiting.values().find(|other| {
            other.agent == job.agent
                && other.priority == job.priority
                && other.queue_seq < job.queue_seq
                && other.reason == Reason::Queued
        });
        older.map_or(Ok(()), |older| Err(format!("{} was granted before {}, which came earlier", job.id, older.id)))
    }
}
