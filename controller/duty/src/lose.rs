//! Nodes whose session ended lose their leases.

use atlas_state::State;
use atlas_types::{Command, LoseNode, Namespace, NodeEpoch, NodeHealth, NodeId, Request};

use crate::{Sessions, request};

/// Commands for the nodes whose session ended, and for those without a lease whose worker left, if they are still up in that incarnation
/// in this state.
pub fn lose(state: &State, sessions: &Sessions, budget: usize) -> Vec<Request> {
    let is_up = |id: &NodeId, epoch: NodeEpoch, idle: bool| {
        let found = state.node(id).filter(|found| found.node.epoch == epoch && found.node.health == NodeHealth::Ready);
        found.is_some_and(|found| !idle || found.leases().len() == 0)
    };
    let ended = sessions.ended().filter(|(node, epoch)| is_up(node, *epoch, false));
    // A lease may be that of a job which runs, and whose worker returns with it.
    let left = sessions.left().filter(|(node, epoch)| is_up(node, *epoch, true));
    let left = left.filter(|(node, epoch)| !sessions.has_ended(node, *epoch));
    // Nodes belong to no namespace; their commands act in the default one.
    let namespace = Namespace::default_namespace();
    let lost = ended.chain(left).take(budget);
    lost.map(|(node, epoch)| request(&namespace, Command::LoseNode(LoseNode { node: node.clone(), epoch }))).collect()
}
