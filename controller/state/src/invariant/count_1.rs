//! COUNT-1: counters only grow, so no number in the state is beyond them.

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    for job in state.jobs.iter() {
        let known = job.queue_seq > 0 && job.queue_seq <= state.queue_seq && job.submitted_seq <= state.seq;
        ensure(known, || format!("{} is from the future: place {}", job.id, job.queue_seq))?;
        let past = job.created_at.max(job.started_at).max(job.completed_at) <= state.at && job.queued_at <= state.clock;
        ensure(past, || format!("{} has times that lie ahead", job.id))?;
    }
    let (active, system, ended) = (state.active(), state.system_jobs(), state.ended.len() as u64);
    ensure(active + system + ended == state.jobs_total(), || {
        format!("{active} active, {system} of the cluster and {ended} ended jobs are not {}", state.jobs_total())
    })
}
