//! First come, first served: no job is granted while an older one of the same agent and priority waits for the same.

use atlas_types::{Event, JobChange, JobStatus, Reason};

use super::Invariant;
use crate::oracle::Facts;
use crate::seen::Seen;

#[derive(Default)]
pub(crate) struct FirstComeFirstServed;

impl Invariant for FirstComeFirstServed {
    fn name(&self) -> &'static str {
        "B.12 first come, first served"
    }

    fn see(&mut self, seen: &Seen, _facts: &mut Facts) -> Result<(), String> {
        let Seen::Event { event, state } = seen else { return Ok(()) };
        let Event::Job { change: JobChange::Granted, job, .. } = &event.event else { return Ok(()) };
        let waiting = state.jobs(&job.namespace, Some(JobStatus::Pending), None);
        let older = waiting.into_iter().find(|other| {
            other.agent == job.agent
                && other.priority == job.priority
                && other.queue_seq < job.queue_seq
                && other.reason == Reason::Queued
        });
        older.map_or(Ok(()), |older| Err(format!("{} was granted before {}, which came earlier", job.id, older.id)))
    }
}
