//! Attempts are bounded: no job gets more leases than its contract allows, across changes of leader and snapshots.

use atlas_types::{Event, JobChange};

use super::Invariant;
use crate::oracle::Facts;
use crate::seen::Seen;

#[derive(Default)]
pub(crate) struct AttemptsAreBounded;

impl Invariant for AttemptsAreBounded {
    fn name(&self) -> &'static str {
        "B.6 attempts are bounded"
    }

    fn see(&mut self, seen: &Seen, _facts: &mut Facts) -> Result<(), String> {
        let Seen::Event { event, .. } = seen else { return Ok(()) };
        let Event::Job { change: JobChange::Granted, job, .. } = &event.event else { return Ok(()) };
        let (Some(lease), Some(spec)) = (&job.lease, &job.spec) else { return Ok(()) };
        let within = lease.attempt.0 <= spec.max_attempts;
        if within {
            Ok(())
        } else {
            Err(format!("{} has attempt {} of {}", job.id, lease.attempt.0, spec.max_attempts))
        }
    }
}
