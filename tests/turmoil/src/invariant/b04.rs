//! Terminal states are final: an ended job does not change any more, neither in events nor in reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::{Event, Job, JobId};

use super::{Invariant, every_job};
use crate::oracle::Facts;
use crate::seen::Seen;
use crate::wire::Answer;

#[derive(Default)]
pub(crate) struct EndsAreFinal {
    ended: BTreeMap<JobId, Arc<Job>>,
}

impl Invariant for EndsAreFinal {
    fn name(&self) -> &'static str {
        "B.4 what ended is final"
    }

    fn see(&mut self, seen: &Seen, _facts: &mut Facts) -> Result<(), String> {
        match seen {
            Seen::Event { event, .. } => {
                let Event::Job { change, job, .. } = &event.event else { return Ok(()) };
                if self.ended.contains_key(&job.id) {
                    return Err(format!("{} had ended, and then: {change:?}", job.id));
                }
                if job.status.is_terminal() {
                    self.ended.insert(job.id, Arc::clone(job));
                }
                Ok(())
            }
            Seen::Missed { state } => {
                for job in every_job(state).filter(|job| job.status.is_terminal()) {
                    self.ended.entry(job.id).or_insert_with(|| Arc::clone(job));
                }
                Ok(())
            }
            Seen::Answered { answer: Answer::Job { job: Some(job), .. }, .. } if job.status.is_terminal() => {
                // A job that was pruned before it was observed has no record.
                match self.ended.get(&job.id) {
                    Some(ended) if **ended != **job => Err(format!("a read found {} other than it ended", job.id)),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}
