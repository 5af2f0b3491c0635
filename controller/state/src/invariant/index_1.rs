//! INDEX-1: every index, count and free amount is what agents, nodes and jobs alone give.

use std::sync::Arc;

use super::ensure;
use crate::node::NodeState;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    for node in state.nodes.values() {
        let leases = node.leases().filter_map(|(_, job)| state.lease(job));
        let mut rebuilt = NodeState::new(Arc::clone(&node.node), node.inventory_since);
        leases.for_each(|lease| rebuilt.take(lease));
        ensure(rebuilt == **node, || format!("node {} has {node:?}, its leases give {rebuilt:?}", node.node.id))?;
    }
    ensure(state.jobs.is_consistent(), || "ids and places of jobs differ".to_owned())?;
    let rebuilt = state.rebuilt_index();
    ensure(rebuilt == state.index, || format!("the indexes are {:?}, a rebuild gives {rebuilt:?}", state.index))
}
