//! Submitting is idempotent by its key, and an unknown outcome is not a failure (B.3): however often a client repeats
//! an unanswered submission, there is at most one job of it, and every answer contains the same one.

use std::collections::BTreeMap;

use atlas_sim::workload;
use atlas_types::{Command, Event, JobChange, JobId, Outcome};

use super::Invariant;
use crate::oracle::Facts;
use crate::seen::Seen;
use crate::wire::{Answer, Ask};

#[derive(Default)]
pub(crate) struct OneJobASubmission {
    jobs: BTreeMap<u64, JobId>,
}

impl OneJobASubmission {
    fn found(&mut self, op: u64, job: JobId) -> Result<(), String> {
        let first = *self.jobs.entry(op).or_insert(job);
        if first == job { Ok(()) } else { Err(format!("submission {op} made two jobs, {first} and {job}")) }
    }
}

impl Invariant for OneJobASubmission {
    fn name(&self) -> &'static str {
        "B.2 one submission makes one job"
    }

    fn see(&mut self, seen: &Seen, _facts: &mut Facts) -> Result<(), String> {
        match seen {
            Seen::Event { event, .. } => match &event.event {
                // A retry is another job and not the client's submission.
                Event::Job { change: JobChange::Submitted, job, .. } if job.original.is_none() => {
                    workload::op_of(&job.input).map_or(Ok(()), |op| self.found(op, job.id))
                }
                _ => Ok(()),
            },
            Seen::Answered {
                ask: Ask::Change(request),
                answer: Answer::Outcome(Ok(Outcome::Submitted { job, .. })),
                ..
            } => {
                let Command::SubmitJob(command) = &request.command else { return Ok(()) };
                workload::op_of(&command.input).map_or(Ok(()), |op| self.found(op, *job))
            }
            _ => Ok(()),
        }
    }
}
