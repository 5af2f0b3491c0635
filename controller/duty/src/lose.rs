//! Nodes whose session ended lose their leases.

use atlas_state::State;
use atlas_types::{Command, LoseNode, Namespace, NodeEpoch, NodeHealth, NodeId, Request};

use crate::request;

/// Commands for those of the `ended` sessions whose node is still up, in that incarnation, in this state.
pub fn lose<'a>(
    state: &State,
    ended: impl IntoIterator<Item = (&'a NodeId, NodeEpoch)>,
    budget: usize,
) -> Vec<Request> {
    let up = |(id, epoch): &(&NodeId, NodeEpoch)| {
        state.node(id).is_some_and(|found| found.node.epoch == *epoch && found.node.health == NodeHealth::Ready)
    };
    let lost = ended.into_iter().filter(up).take(budget);
    // Nodes belong to no namespace; their commands act in the default one.
    let namespace = Namespace::default_namespace();
    lost.map(|(node, epoch)| request(&namespace, Command::LoseNode(LoseNode { node: node.clone(), epoch }))).collect()
}
