//! Stops new leases on a node until it is empty. A new epoch ends the drain.

use std::sync::Arc;

use atlas_types::{DrainNode, Outcome, Rejection};

use crate::change::Change;

pub(super) fn apply(command: &DrainNode, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    if !change.node(&command.node)?.node.draining {
        change.change_node(&command.node, |node| Arc::make_mut(&mut node.node).draining = true);
        change.emit_node(&command.node);
    }
    Ok(Outcome::Done)
}
