//! The memory and GPU memory that slots may occupy together.

use atlas_allocation::Free;
use atlas_types::{Allocation, Inventory};

/// What a node has for its slots. Cores and concurrency permits are the controller's to count: an idle slot uses none.
#[derive(Debug)]
pub(crate) struct Room(Free);

/// What is missing for a slot.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Shortage {
    memory: bool,
    gpus: Vec<u32>,
}

impl Room {
    /// The room of a node with this inventory. A broken GPU counts with all its memory: what runs on it runs on.
    pub(crate) fn of(inventory: &Inventory) -> Self {
        Self(Free::at_best(inventory))
    }

    /// What is missing for `wanted` beside the slots that hold `held`.
    ///
    /// A slot that wants more than the node has at all needs all of it, so it runs alone instead of never.
    pub(crate) fn shortage<'a>(&self, held: impl Iterator<Item = &'a Allocation>, wanted: &Allocation) -> Shortage {
        let mut left = self.0.clone();
        for allocation in held {
            left.hold(allocation);
        }
        let memory = left.memory_bytes < wanted.memory_bytes.min(self.0.memory_bytes);
        let is_short = |index: u32, bytes: u64| {
            let gpu = left.gpus.iter().find(|gpu| gpu.index == index);
            gpu.is_some_and(|gpu| match gpu.total_bytes {
                0 => gpu.holders > 0,
                total => gpu.free_bytes < bytes.min(total),
            })
        };
        let shares = wanted.gpus.iter().filter(|share| is_short(share.index, share.vram_bytes));
        Shortage { memory, gpus: shares.map(|share| share.index).collect() }
    }
}

impl Shortage {
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a slot that holds this has some of what is missing.
    pub(crate) fn is_eased_by(&self, held: &Allocation) -> bool {
        self.memory && held.memory_bytes > 0 || held.gpus.iter().any(|share| self.gpus.contains(&share.index))
    }
}
