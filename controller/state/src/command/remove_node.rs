//! Forgets a node that holds no lease.

use atlas_types::{Event, Outcome, Rejection, RemoveNode};

use crate::change::Change;

pub(super) fn apply(command: &RemoveNode, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let leases = change.node(&command.node)?.leases().len() as u64;
    if leases > 0 {
        return Err(Rejection::NodeBusy { leases });
    }
    let old = change.state.nodes.remove(&command.node);
    change.state.index.node(old.as_deref(), None);
    change.emit(Event::NodeRemoved { node: command.node.clone() });
    Ok(Outcome::Done)
}
