//! An operator stops new leases on a node, or allows them again, which also ends a drain.

use std::sync::Arc;

use atlas_types::{Cordon, Outcome, Rejection};

use crate::change::Change;

pub(super) fn apply(command: &Cordon, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let node = &change.node(&command.node)?.node;
    let draining = node.draining && command.cordoned;
    if (node.cordoned, node.draining) != (command.cordoned, draining) {
        change.change_node(&command.node, |node| {
            let node = Arc::make_mut(&mut node.node);
            (node.cordoned, node.draining) = (command.cordoned, draining);
        });
        change.emit_node(&command.node);
    }
    Ok(Outcome::Done)
}
