//! Removes nodes that stay down, so that unused names do not fill the state.

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_state::State;
use atlas_types::{Command, Namespace, NodeEpoch, NodeHealth, NodeId, RemoveNode, Request};

use crate::request;

/// Since when which nodes are down, by the leader's monotonic clock. A leader that takes over gives each its full time again.
#[derive(Debug, Clone, Default)]
pub struct DownNodes {
    since: BTreeMap<NodeId, (NodeEpoch, Duration)>,
}

impl DownNodes {
    /// Looks which nodes are down at `now`. Looks at every node: to be called now and then, not with every entry.
    pub fn look(&mut self, state: &State, now: Duration) {
        let before = std::mem::take(&mut self.since);
        let down = state.nodes().map(|found| &found.node).filter(|node| node.health == NodeHealth::Down);
        self.since = down
            .map(|node| {
                let known = before.get(&node.id).filter(|(epoch, _)| *epoch == node.epoch);
                (node.id.clone(), (node.epoch, known.map_or(now, |(_, since)| *since)))
            })
            .collect();
    }

    /// Commands that forget what is down for `after` at `now` in this state: nodes that hold no lease and that no operator has
    /// cordoned, since that request would be lost with them.
    pub fn forget(&self, state: &State, now: Duration, after: Duration, budget: usize) -> Vec<Request> {
        let due = self.since.iter().filter(|(_, (_, since))| now.saturating_sub(*since) >= after);
        let gone = due.filter(|(id, (epoch, _))| {
            state.node(id).is_some_and(|found| {
                let node = &found.node;
                node.epoch == *epoch && node.health == NodeHealth::Down && !node.cordoned && found.leases().len() == 0
            })
        });
        let namespace = Namespace::default_namespace();
        let command = |(id, _): (&NodeId, _)| request(&namespace, Command::RemoveNode(RemoveNode { node: id.clone() }));
        gone.take(budget).map(command).collect()
    }
}
