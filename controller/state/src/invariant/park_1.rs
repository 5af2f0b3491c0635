//! PARK-1: a parked job holds no lease and waits for something that wakes it; its journal says where it continues.
//!
//! Places and hardware are held by leases alone, which `CAP-1` and `INDEX-1` count.

use atlas_types::{JobStatus, Reason, WAITS_MAX, Wait};

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    for job in state.jobs.iter() {
        ensure(job.parks <= job.attempt.0, || {
            format!("{} parked {} times in {} attempts", job.id, job.parks, job.attempt)
        })?;
        let is_parked = job.status == JobStatus::Pending && job.reason == Reason::Parked;
        ensure(is_parked == job.parked.is_some(), || {
            format!("{} is {} because of {:?} and waits for {:?}", job.id, job.status.as_str(), job.reason, job.parked)
        })?;
        let Some(parked) = &job.parked else { continue };
        ensure(job.lease.is_none() && job.parks > 0, || format!("{} is parked and holds {:?}", job.id, job.lease))?;
        ensure(state.journals.contains_key(&job.id), || format!("{} is parked without a journal", job.id))?;
        let waits = parked.waits.len() as u64;
        ensure((1..=WAITS_MAX).contains(&waits), || format!("{} waits for {waits} things", job.id))?;
        let timed = parked.waits.iter().any(|wait| matches!(wait, Wait::Time { .. }));
        ensure(timed == parked.due.is_some(), || format!("{} waits for {parked:?}", job.id))?;
    }
    Ok(())
}
