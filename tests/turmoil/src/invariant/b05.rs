//! Only these transitions exist: pending to running to an end, and running to pending when a lease is lost.

use std::collections::BTreeMap;

use atlas_types::{Event, JobChange, JobId, JobStatus};

use super::{Invariant, every_job};
use crate::oracle::Facts;
use crate::seen::Seen;

#[derive(Default)]
pub(crate) struct EdgesAreClosed {
    status: BTreeMap<JobId, JobStatus>,
}

impl Invariant for EdgesAreClosed {
    fn name(&self) -> &'static str {
        "B.5 the edges are closed"
    }

    fn see(&mut self, seen: &Seen, _facts: &mut Facts) -> Result<(), String> {
        if let Seen::Missed { state } = seen {
            self.status = every_job(state).map(|job| (job.id, job.status)).collect();
        }
        let Seen::Event { event, .. } = seen else { return Ok(()) };
        let Event::Job { change, old_status, job } = &event.event else { return Ok(()) };
        let before = self.status.insert(job.id, job.status);
        if before.is_some_and(|before| before != *old_status) {
            return Err(format!("{} was {before:?} and its event says {old_status:?}", job.id));
        }
        let closed = match old_status {
            // A job can complete only under a lease.
            JobStatus::Pending => job.status != JobStatus::Completed,
            JobStatus::Running => true,
            JobStatus::Completed | JobStatus::Failed | JobStatus::Cancelled => *change == JobChange::Submitted,
        };
        if closed { Ok(()) } else { Err(format!("{} went from {old_status:?} to {:?}", job.id, job.status)) }
    }
}
