//! Gives one node the right to run one attempt. The placement was chosen by the planner; here it must still hold.

use std::sync::Arc;

use atlas_types::{GrantLease, Job, JobChange, JobStatus, Lease, Outcome, Reason, Rejection, RunSpec};

use crate::change::{Change, set_warm};
use crate::node::NodeState;

pub(super) fn apply(command: &GrantLease, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.job(command.job)?;
    let spec = check_job(job)?;
    let node = change.node(&command.node)?;
    check_node(node, spec, command)?;
    if let Some(limit) = spec.concurrency
        && change.state.running_of(&job.namespace, &job.agent) >= limit
    {
        return Err(Rejection::LimitReached { what: "running jobs of this agent", limit: u64::from(limit) });
    }

    let mut job = (**job).clone();
    change.state.grant_seq = change.state.grant_seq.next();
    let token = change.state.grant_seq;
    job.attempt = job.attempt.next();
    let lease = Arc::new(Lease {
        namespace: job.namespace.clone(),
        job: job.id,
        node: command.node.clone(),
        epoch: command.epoch,
        token,
        attempt: job.attempt,
        allocation: command.allocation.clone(),
        granted_at: change.clock,
        started: false,
    });
    change.change_node(&command.node, |node| {
        node.take(&lease);
        // The worker uses an idle warm slot if it has one; its next report says how many are left.
        if let Some(pin) = &job.pin {
            let idle = node.node.warm.get(&pin.digest).copied().unwrap_or(0);
            set_warm(node, pin.digest, idle.saturating_sub(1));
        }
    });
    job.lease = Some(lease);
    job.status = JobStatus::Running;
    job.reason = Reason::Running;
    job.started_at = change.at;
    let attempt = job.attempt;
    change.put(job, JobChange::Granted, JobStatus::Pending);
    Ok(Outcome::Granted { token, attempt })
}

fn check_job(job: &Job) -> Result<&RunSpec, Rejection> {
    let wrong = Rejection::WrongStatus { status: job.status };
    match (job.status, job.reason) {
        (JobStatus::Pending, Reason::Queued | Reason::Lost) => job.spec.as_deref().ok_or(Rejection::UnknownAgent),
        (JobStatus::Pending, Reason::Backoff { .. }) => Err(Rejection::NotDue),
        _ => Err(wrong),
    }
}

fn check_node(node: &NodeState, spec: &RunSpec, command: &GrantLease) -> Result<(), Rejection> {
    if node.node.epoch != command.epoch || !node.takes_leases() {
        return Err(Rejection::NodeUnavailable);
    }
    let inventory = &node.node.inventory;
    let fits =
        spec.demand.suits(&node.node.id, inventory) && node.free.admits(inventory, &spec.demand, &command.allocation);
    if fits { Ok(()) } else { Err(Rejection::DoesNotFit) }
}
