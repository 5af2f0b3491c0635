//! A node's session was lost: it is down and all its leases are lost.

use std::sync::Arc;

use atlas_types::{LoseNode, NodeHealth, Outcome, Rejection};

use crate::change::Change;

pub(super) fn apply(command: &LoseNode, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let state = Arc::clone(change.node(&command.node)?);
    if state.node.epoch != command.epoch || state.node.health == NodeHealth::Down {
        return Err(Rejection::NodeUnavailable);
    }
    change.change_node(&command.node, |node| {
        let node = Arc::make_mut(&mut node.node);
        node.health = NodeHealth::Down;
        node.warm.clear();
    });
    change.emit_node(&command.node);
    change.lose_all(&state);
    Ok(Outcome::Done)
}
