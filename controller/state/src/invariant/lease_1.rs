//! LEASE-1: at most one live lease a job; a job runs if and only if it has one, on a ready node that knows of it.

use atlas_types::{JobStatus, NodeHealth};

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    for job in state.jobs.iter() {
        ensure((job.status == JobStatus::Running) == job.lease.is_some(), || {
            format!("{} is {} and its lease is {:?}", job.id, job.status.as_str(), job.lease)
        })?;
        let Some(lease) = &job.lease else { continue };
        let own = lease.job == job.id && lease.namespace == job.namespace && lease.attempt == job.attempt;
        ensure(own, || format!("{} holds a lease that is not its own: {lease:?}", job.id))?;
        let node = state.nodes.get(&lease.node).ok_or_else(|| format!("{} runs on no node", job.id))?;
        let known = node.leases.get(&lease.token) == Some(&job.id);
        let ready = node.node.epoch == lease.epoch && node.node.health == NodeHealth::Ready;
        ensure(known && ready, || format!("node {} does not hold {lease:?}", lease.node))?;
    }
    Ok(())
}
