//! Open circuits by the time from which on they may be probed.

use atlas_types::{AgentName, Circuit, ClusterTime, Namespace, NodeId, Version};

use crate::map::Set;

/// What has a circuit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CircuitKey {
    Agent(Namespace, AgentName, Version),
    Node(NodeId),
}

/// An index of open circuits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Circuits {
    /// Those that may be probed from a time on.
    due: Set<(ClusterTime, CircuitKey)>,
    /// How many agent versions and nodes have an open circuit.
    pub(crate) agents: u64,
    pub(crate) nodes: u64,
}

impl Circuits {
    pub(crate) fn change(&mut self, key: impl Fn() -> CircuitKey, old: Option<&Circuit>, new: Option<&Circuit>) {
        if old == new {
            return;
        }
        let open = |circuit: Option<&Circuit>| u64::from(circuit.is_some_and(|circuit| circuit.open.is_some()));
        let count = match key() {
            CircuitKey::Agent(..) => &mut self.agents,
            CircuitKey::Node(_) => &mut self.nodes,
        };
        *count = *count + open(new) - open(old);
        old.and_then(Circuit::due).into_iter().for_each(|due| drop(self.due.remove(&(due, key()))));
        new.and_then(Circuit::due).into_iter().for_each(|due| drop(self.due.insert((due, key()))));
    }

    /// One whose pause has passed.
    pub(crate) fn next_due(&self, clock: ClusterTime) -> Option<CircuitKey> {
        self.due.get_min().filter(|(due, _)| *due <= clock).map(|(_, key)| key.clone())
    }
}
