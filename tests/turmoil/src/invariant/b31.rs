//! A wait for the end of a job is answered only once the answering member has the whole ended job: its status, its end
//! time and its output.

use atlas_types::{Job, JobStatus, Timestamp};

use super::Invariant;
use crate::oracle::Facts;
use crate::seen::Seen;
use crate::wire::{Answer, Ask};

#[derive(Default)]
pub(crate) struct AWaitEndsWithTheWhole;

/// The missing part of an ended job.
fn missing(job: &Job) -> Option<&'static str> {
    match job.status {
        JobStatus::Pending | JobStatus::Running => Some("end"),
        JobStatus::Completed if job.output.is_none() => Some("output"),
        JobStatus::Failed if job.failure.is_none() => Some("failure"),
        _ if job.completed_at == Timestamp(0) => Some("time"),
        _ => None,
    }
}

impl Invariant for AWaitEndsWithTheWhole {
    fn name(&self) -> &'static str {
        "B.31 a wait ends with the whole job"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        let Seen::Answered { ask: Ask::Wait(id), answer: Answer::Job { job, seq }, .. } = seen else { return Ok(()) };
        facts.coverage.count("waits");
        let missing = match job {
            Some(job) => missing(job),
            // Retention removed the job right after its end.
            None if facts.jobs.get(id).is_some_and(|known| known.ended) => None,
            None => Some("job"),
        };
        missing.map_or(Ok(()), |what| Err(format!("a wait for {id} was answered from {seq}, and it has no {what}")))
    }
}
