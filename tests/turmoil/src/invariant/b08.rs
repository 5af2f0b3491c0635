//! One live lease per job (B.15), fencing (B.16), and results of one attempt: a job completes only under its current lease, with
//! the output of that attempt.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_sim::workload;
use atlas_types::{Event, FailureKind, FencingToken, Job, JobChange, JobId, JobStatus};

use super::{Invariant, every_job};
use crate::oracle::Facts;
use crate::seen::Seen;

#[derive(Default)]
pub(crate) struct OneAttemptCounts {
    live: BTreeMap<JobId, FencingToken>,
    newest: FencingToken,
}

impl Invariant for OneAttemptCounts {
    fn name(&self) -> &'static str {
        "B.8, B.15, B.16 one attempt counts"
    }

    fn see(&mut self, seen: &Seen, _facts: &mut Facts) -> Result<(), String> {
        if let Seen::Missed { state } = seen {
            let token = |job: &Arc<Job>| Some((job.id, job.lease.as_ref()?.token));
            self.live = every_job(state).filter_map(token).collect();
        }
        let Seen::Event { event, .. } = seen else { return Ok(()) };
        let Event::Job { change, job, .. } = &event.event else { return Ok(()) };
        let lease = job.lease.as_ref().map(|lease| lease.token);
        let live = match lease {
            Some(token) => self.live.insert(job.id, token),
            None => self.live.remove(&job.id),
        };
        if *change == JobChange::Granted
            && let Some(token) = lease
        {
            if let Some(live) = live {
                return Err(format!("{} has two live leases, {live} and {token}", job.id));
            }
            if token <= self.newest {
                return Err(format!("the token {token} of {} is not newer than {}", job.id, self.newest));
            }
            self.newest = token;
        }
        let by = job.output.as_ref().and_then(workload::token_of);
        // The error of a failed child identifies its lease, as an output does.
        let failed = job.failure.as_ref().filter(|failure| failure.kind == FailureKind::Agent);
        let failed_by = failed.and_then(|failure| failure.error.parse().ok()).map(FencingToken);
        if failed_by.is_some() && *change == JobChange::Ended && failed_by != live {
            return Err(format!("{} failed under lease {live:?} with the error of {failed_by:?}", job.id));
        }
        if *change == JobChange::Ended && job.status == JobStatus::Completed && (by.is_none() || by != live) {
            return Err(format!("{} completed under lease {live:?} with the result of {by:?}", job.id));
        }
        Ok(())
    }
}
