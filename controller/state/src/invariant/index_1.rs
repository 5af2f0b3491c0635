//! INDEX-1: every index, count and free amount is what agents, nodes, jobs and join tokens alone give.

use std::sync::Arc;

use super::ensure;
use crate::node::NodeState;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    check_nodes(state)?;
    check_tables(state)
}

/// Free amounts and leases of nodes.
pub(super) fn check_nodes(state: &State) -> Result<(), String> {
    for node in state.nodes.values() {
        let jobs = node.leases().filter_map(|(_, job)| state.jobs.get(job));
        let mut rebuilt = NodeState::new(Arc::clone(&node.node), node.inventory_since);
        for (job, lease) in jobs.filter_map(|job| Some((job, job.lease.as_ref()?))) {
            rebuilt.take(lease, job.depth());
            if state.children_awaited(job.id) > 0 {
                rebuilt.lend(lease.allocation.place, job.depth(), true);
            }
        }
        // How it came to what it owes the leases do not tell: CAP-1 does.
        rebuilt.owed = node.owed;
        ensure(rebuilt == **node, || format!("node {} has {node:?}, its leases give {rebuilt:?}", node.node.id))?;
    }
    Ok(())
}

/// Indexes and counts.
pub(super) fn check_tables(state: &State) -> Result<(), String> {
    ensure(state.jobs.is_consistent(), || "ids and places of jobs differ".to_owned())?;
    let rebuilt = state.rebuilt_index();
    ensure(rebuilt == state.index, || format!("the indexes are {:?}, a rebuild gives {rebuilt:?}", state.index))
}
