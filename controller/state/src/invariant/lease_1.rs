//! LEASE-1: a running job is carried by exactly one live lease, on a ready node that knows of it, or by one run; no other job is
//! carried. Its agent's version says by which. A run carries one job at a time.

use std::collections::BTreeSet;

use atlas_types::{Job, JobStatus, NodeHealth};

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    let mut runs = BTreeSet::new();
    for job in state.jobs.iter() {
        let (lease, carrier) = (&job.lease, job.carrier());
        let carriers = u32::from(lease.is_some()) + u32::from(carrier.is_some());
        ensure(carriers == u32::from(job.status == JobStatus::Running), || {
            format!("{} is {}, its lease is {lease:?} and its run {carrier:?}", job.id, job.status.as_str())
        })?;
        let allowed = if job.is_for_a_run() { lease.is_none() } else { job.carried.is_none() };
        ensure(allowed, || format!("{} is not carried as its agent says: {lease:?}, {:?}", job.id, job.carried))?;
        ensure(carrier.is_none_or(|carried| runs.insert(carried.run)), || {
            format!("{} is carried by {carrier:?}, which carries another job", job.id)
        })?;
        check_lease(state, job)?;
    }
    Ok(())
}

fn check_lease(state: &State, job: &Job) -> Result<(), String> {
    let Some(lease) = &job.lease else { return Ok(()) };
    let own = lease.job == job.id && lease.namespace == job.namespace && lease.attempt == job.attempt;
    ensure(own, || format!("{} holds a lease that is not its own: {lease:?}", job.id))?;
    let node = state.nodes.get(&lease.node).ok_or_else(|| format!("{} runs on no node", job.id))?;
    let known = node.leases.get(&lease.token) == Some(&job.id);
    let ready = node.node.epoch == lease.epoch && node.node.health == NodeHealth::Ready;
    ensure(known && ready, || format!("node {} does not hold {lease:?}", lease.node))
}
