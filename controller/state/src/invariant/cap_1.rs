//! CAP-1: no resource is granted twice. The leases of a node are within its inventory; if that shrank, no later lease
//! uses the missing part. Jobs that do not wait for a child use at most the node's places of their kind: an excess exists only
//! because a job resumed before its place was free again, and no grant adds to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_allocation::{Free, Places};
use atlas_types::{Lease, Place};

use super::ensure;
use crate::node::NodeState;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    for node in state.nodes.values() {
        check_places(node)?;
        let leases: Vec<_> = node.leases().filter_map(|(_, job)| state.lease(job)).collect();
        for (what, amount, capacity) in dimensions(node) {
            let held =
                |leases: &mut dyn Iterator<Item = &Arc<Lease>>| leases.map(|lease| amount.of(lease)).sum::<u64>();
            let all = held(&mut leases.iter().copied());
            let since = held(&mut leases.iter().copied().filter(|lease| lease.token > node.inventory_since));
            ensure(all <= capacity || since == 0, || {
                format!("leases hold {all} of the {capacity} {what} of node {}", node.node.id)
            })?;
        }
    }
    Ok(())
}

fn check_places(node: &NodeState) -> Result<(), String> {
    let owed = node.free.places_owed().into_iter().zip(node.owed);
    for (place, (owed, admitted)) in Place::ALL.into_iter().zip(owed) {
        ensure(owed <= admitted, || {
            let Places { total, permits, .. } = node.free.places(place);
            format!("leases take {} of the {total} {place:?} places of node {}", permits.taken(), node.node.id)
        })?;
    }
    Ok(())
}

enum Amount {
    Cores,
    Memory,
    Vram(u32),
}

impl Amount {
    fn of(&self, lease: &Lease) -> u64 {
        let allocation = &lease.allocation;
        match self {
            Self::Cores => u64::from(allocation.cores),
            Self::Memory => allocation.memory_bytes,
            Self::Vram(index) => {
                let shares = allocation.gpus.iter().filter(|share| share.index == *index);
                shares.map(|share| share.vram_bytes).fold(0, u64::saturating_add)
            }
        }
    }
}

fn dimensions(node: &NodeState) -> Vec<(&'static str, Amount, u64)> {
    let inventory = &node.node.inventory;
    let tracked = |amount: u64| if amount == 0 { u64::MAX } else { amount };
    let mut all = vec![
        ("cores", Amount::Cores, tracked(inventory.cores.into())),
        ("bytes of memory", Amount::Memory, tracked(inventory.memory_bytes)),
    ];
    // By index, as grants count them: below level 5 an inventory may list a GPU more than once.
    let mut vram: BTreeMap<u32, u64> = inventory.gpus.iter().map(|gpu| (gpu.index, 0)).collect();
    vram.extend(Free::of(inventory).gpus.iter().map(|gpu| (gpu.index, gpu.total_bytes)));
    let vram = vram.into_iter();
    all.extend(vram.map(|(index, capacity)| ("bytes of GPU memory", Amount::Vram(index), capacity)));
    all
}
