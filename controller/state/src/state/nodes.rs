//! Changes of nodes that keep their indexes.

use std::sync::Arc;

use atlas_types::{Circuit, Digest, NodeId};

use super::State;
use crate::index::{self, CircuitKey};
use crate::node::NodeState;

impl State {
    /// Changes a node in place and keeps its indexes. Of its warm slots only those of `warm` may change, and its circuit may not.
    pub(crate) fn change_node(&mut self, id: &NodeId, warm: Option<Digest>, change: impl FnOnce(&mut NodeState)) {
        let Some(found) = self.nodes.get_mut(id) else { return };
        let is_warm = |node: &NodeState| warm.is_some_and(|digest| node.node.warm.contains_key(&digest));
        let (was_at, was_warm, was_lending) = (index::places(found), is_warm(found), index::lends(found));
        // Not held beside this: then it is changed in place, unless a reader of an older state has it.
        change(Arc::make_mut(found));
        let rooms = &mut self.index.rooms;
        rooms.move_node(was_at, index::places(found));
        if was_lending != index::lends(found) {
            rooms.change_lending(id, !was_lending);
        }
        if let Some(digest) = warm.filter(|_| was_warm != is_warm(found)) {
            rooms.change_warm(digest, id, !was_warm);
        }
    }

    /// Changes the circuit of a node and keeps its indexes.
    pub(crate) fn set_node_circuit(&mut self, id: &NodeId, circuit: Circuit) {
        let Some(old) = self.nodes.get(id).map(|found| found.node.circuit).filter(|old| *old != circuit) else {
            return;
        };
        self.change_node(id, None, |node| Arc::make_mut(&mut node.node).circuit = circuit);
        self.index.circuits.change(|| CircuitKey::Node(id.clone()), Some(&old), Some(&circuit));
    }
}
