//! What a demand takes of a node: as stated, unless the node's inventory was declared or is not checked.

use atlas_types::{Demand, Inventory, Place};

/// Bytes of the 1 GB that counts as the default of a job with a process on a node with a declared inventory.
const DECLARED_MEMORY_BYTES_MIN: u64 = 1 << 30;

/// Cores that a demand takes on a node with `inventory`.
pub fn cores(demand: &Demand, inventory: &Inventory) -> u32 {
    match inventory {
        Inventory { unchecked: true, .. } => 0,
        Inventory { declared: true, .. } if demand.place == Place::Process => demand.cores.max(1),
        _ => demand.cores,
    }
}

/// Memory that a demand takes on a node with `inventory`.
pub fn memory_bytes(demand: &Demand, inventory: &Inventory) -> u64 {
    match inventory {
        Inventory { unchecked: true, .. } => 0,
        Inventory { declared: true, .. } if demand.place == Place::Process => {
            demand.memory_bytes.max(DECLARED_MEMORY_BYTES_MIN)
        }
        _ => demand.memory_bytes,
    }
}

/// GPUs that a demand takes on a node with `inventory`.
pub fn gpus(demand: &Demand, inventory: &Inventory) -> u32 {
    if inventory.unchecked { 0 } else { demand.gpus }
}
