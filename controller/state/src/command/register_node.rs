//! A worker's hello. A new boot id is a new epoch, which loses all that the older one held; the same boot id is a resume.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::{Node, NodeEpoch, NodeHealth, Outcome, RegisterNode, Rejection};

use super::check_limit;
use crate::change::Change;
use crate::node::NodeState;

pub(super) fn apply(command: &RegisterNode, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    match change.state.nodes.get(&command.node).cloned() {
        Some(old) if old.node.boot_id == command.boot_id => Ok(resume(command, change, &old)),
        Some(old) => Ok(restart(command, change, &old)),
        None => {
            check_limit("nodes", change.state.nodes.len() as u64, change.state.config.nodes_max)?;
            Ok(begin_epoch(command, change, NodeEpoch(1), false))
        }
    }
}

/// A resume: the leases live on. A smaller inventory only stops new ones.
fn resume(command: &RegisterNode, change: &mut Change<'_>, old: &NodeState) -> Outcome {
    let epoch = old.node.epoch;
    let moved = old.node.inventory != command.inventory;
    if moved || old.node.health != NodeHealth::Ready {
        let mut new = old.clone();
        let node = Arc::make_mut(&mut new.node);
        node.health = NodeHealth::Ready;
        if moved {
            node.inventory = command.inventory.clone();
            new.inventory_since = change.state.grant_seq;
            let state = &*change.state;
            new.recount(old.leases().filter_map(|(_, job)| state.lease(job).map(|lease| &**lease)));
        }
        change.put_node(new);
        change.emit_node(&command.node);
    }
    Outcome::NodeRegistered { epoch }
}

/// A restart: whatever the older process held is lost, an operator's cordon stays.
fn restart(command: &RegisterNode, change: &mut Change<'_>, old: &NodeState) -> Outcome {
    change.lose_all(old);
    begin_epoch(command, change, old.node.epoch.next(), old.node.cordoned)
}

fn begin_epoch(command: &RegisterNode, change: &mut Change<'_>, epoch: NodeEpoch, cordoned: bool) -> Outcome {
    let node = Node {
        id: command.node.clone(),
        epoch,
        boot_id: command.boot_id,
        inventory: command.inventory.clone(),
        health: NodeHealth::Ready,
        cordoned,
        draining: false,
        warm: BTreeMap::new(),
        registered_at: change.at,
    };
    change.put_node(NodeState::new(Arc::new(node), change.state.grant_seq));
    change.emit_node(&command.node);
    Outcome::NodeRegistered { epoch }
}
