//! A node belongs to one process: its epochs only grow, and all its leases have the current epoch.

use std::collections::BTreeMap;

use atlas_types::{Event, NodeEpoch, NodeId};

use super::Invariant;
use crate::oracle::Facts;
use crate::seen::Seen;

#[derive(Default)]
pub(crate) struct OneProcessANode {
    epochs: BTreeMap<NodeId, NodeEpoch>,
}

impl Invariant for OneProcessANode {
    fn name(&self) -> &'static str {
        "B.19 one process a node"
    }

    fn see(&mut self, seen: &Seen, _facts: &mut Facts) -> Result<(), String> {
        let Seen::Event { event, state } = seen else { return Ok(()) };
        let Event::Node { node } = &event.event else { return Ok(()) };
        let before = self.epochs.insert(node.id.clone(), node.epoch);
        if before.is_some_and(|before| before > node.epoch) {
            return Err(format!("{} went from epoch {before:?} back to {}", node.id, node.epoch));
        }
        let current = state.node(&node.id).map(|found| found.node.epoch);
        let older = state.leases_of(&node.id).find(|lease| Some(lease.epoch) != current);
        older.map_or(Ok(()), |lease| Err(format!("{} is leased to an older process of {}", lease.job, node.id)))
    }
}
