//! NODE-1: a node that is down holds no lease and keeps nothing warm, what is warm is at least one slot, only a drain has a deadline,
//! and an operator's labels are within their bound.

use atlas_types::{LABELS_MAX, NodeHealth};

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    for (id, held) in state.nodes.iter() {
        let node = &held.node;
        ensure(*id == node.id && node.epoch.0 > 0, || format!("node {id} is kept wrongly"))?;
        let empty = held.leases.is_empty() && node.warm.is_empty();
        ensure(node.health == NodeHealth::Ready || empty, || format!("node {id} is down and not empty"))?;
        ensure(node.warm.values().all(|idle| *idle > 0), || format!("node {id} counts no warm slots"))?;
        ensure(node.draining || node.drain_until.is_none(), || format!("node {id} gives back without a drain"))?;
        ensure(node.operator_labels.len() <= LABELS_MAX, || format!("node {id} has too many labels"))?;
        ensure(held.inventory_since <= state.grant_seq, || format!("node {id} is from the future"))?;
    }
    Ok(())
}
