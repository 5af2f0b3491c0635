//! What is free on a node, and whether a demand fits there. The planner proposes with this, `apply` checks with this.

use atlas_types::{Allocation, Demand, Gpu, GpuShare, Inventory, Place};

use crate::{ConcurrencyPermits, amount};

/// What a node has left: its inventory less what its leases hold. Never below zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Free {
    /// Places for jobs that run a process.
    pub processes: Places,
    /// Places for jobs that call a model and mostly wait.
    pub llm: Places,
    /// Cores; [`u32::MAX`] where the inventory does not track them.
    pub cores: u32,
    /// Memory; [`u64::MAX`] where the inventory does not track it.
    pub memory_bytes: u64,
    /// Healthy GPUs by index.
    pub gpus: Vec<GpuFree>,
    /// Nothing but places counts here: see [`Inventory::unchecked`].
    pub unchecked: bool,
}

/// The places of one kind on a node. A job lends only to jobs that take the same kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    /// Jobs that may start now, besides those that have a place of a waiting one.
    pub free: u32,
    /// All places of the inventory.
    pub total: u32,
    /// The jobs that take places.
    pub permits: ConcurrencyPermits,
}

impl Places {
    fn of(total: u32) -> Self {
        Self { free: total, total, permits: ConcurrencyPermits::default() }
    }

    fn change(&mut self, change: impl FnOnce(&mut ConcurrencyPermits)) {
        change(&mut self.permits);
        self.free = self.total.saturating_sub(self.permits.taken());
    }
}

/// What one GPU has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GpuFree {
    /// Its index on the node.
    pub index: u32,
    /// All its memory; 0 if the amount is not known.
    pub total_bytes: u64,
    /// Memory that no lease holds.
    pub free_bytes: u64,
    /// Leases that hold a share of it.
    pub holders: u32,
}

impl GpuFree {
    fn of(gpu: &Gpu) -> Self {
        Self { index: gpu.index, total_bytes: gpu.memory_bytes, free_bytes: gpu.memory_bytes, holders: 0 }
    }

    /// The share that a demand for `vram_bytes` takes here; none if there is no room.
    ///
    /// Without an amount, and on a device whose memory is not known, the share is the whole device.
    pub fn share(&self, vram_bytes: u64) -> Option<GpuShare> {
        let room = if vram_bytes == 0 || self.total_bytes == 0 {
            self.holders == 0 && self.free_bytes == self.total_bytes
        } else {
            self.free_bytes >= vram_bytes
        };
        let held = if vram_bytes == 0 || self.total_bytes == 0 { self.total_bytes } else { vram_bytes };
        room.then_some(GpuShare { index: self.index, vram_bytes: held })
    }
}

impl Free {
    /// All that a node with this inventory has while it holds no lease.
    pub fn of(inventory: &Inventory) -> Self {
        let mut gpus: Vec<_> = inventory.gpus.iter().filter(|gpu| gpu.healthy).map(GpuFree::of).collect();
        gpus.sort_unstable();
        // A node that names a device twice has it once.
        gpus.dedup_by_key(|gpu| gpu.index);
        Self {
            processes: Places::of(inventory.places),
            llm: Places::of(inventory.llm_places),
            cores: if inventory.cores == 0 { u32::MAX } else { inventory.cores },
            memory_bytes: if inventory.memory_bytes == 0 { u64::MAX } else { inventory.memory_bytes },
            gpus,
            unchecked: inventory.unchecked,
        }
    }

    /// All that a node with this inventory has while it holds no lease and none of its GPUs is broken: a GPU that is broken
    /// today may be repaired, and a job must not fail for a passing fault.
    pub fn at_best(inventory: &Inventory) -> Self {
        let mut gpus: Vec<_> = inventory.gpus.iter().map(GpuFree::of).collect();
        gpus.sort_unstable();
        gpus.dedup_by_key(|gpu| gpu.index);
        Self { gpus, ..Self::of(inventory) }
    }

    /// The places of a kind.
    pub fn places(&self, place: Place) -> &Places {
        match place {
            Place::Process => &self.processes,
            Place::Llm => &self.llm,
        }
    }

    /// Whether a job of this depth may start in a place of this kind.
    pub fn has_place(&self, place: Place, depth: u32) -> bool {
        let places = self.places(place);
        places.free > 0 || places.permits.lends_to(depth)
    }

    /// For each kind of [`Place::ALL`]: places that are taken beyond those of the inventory. It shrank, or jobs resumed before their
    /// children gave back the place that they had lent. As long as there are any, a job starts only in a place that another lends.
    pub fn places_owed(&self) -> [u32; 2] {
        Place::ALL.map(|place| {
            let places = self.places(place);
            places.permits.taken().saturating_sub(places.total)
        })
    }

    /// Whether a job lends its place, of any kind.
    pub fn lends(&self) -> bool {
        self.processes.permits.lends() || self.llm.permits.lends()
    }

    /// Changes who takes places of a kind.
    pub fn change_permits(&mut self, place: Place, change: impl FnOnce(&mut ConcurrencyPermits)) {
        match place {
            Place::Process => self.processes.change(change),
            Place::Llm => self.llm.change(change),
        }
    }

    /// All that a node with this inventory has while the jobs that take places here take them there, and hold nothing else.
    pub fn with_permits_of(inventory: &Inventory, other: &Self) -> Self {
        let mut free = Self::of(inventory);
        free.processes.change(|permits| permits.clone_from(&other.processes.permits));
        free.llm.change(|permits| permits.clone_from(&other.llm.permits));
        free
    }

    /// Takes a place for a job of this depth and what `allocation` holds; see [`Self::hold`].
    pub fn take(&mut self, allocation: &Allocation, depth: u32) -> bool {
        self.change_permits(allocation.place, |permits| permits.add(depth));
        self.hold(allocation)
    }

    /// Takes what `allocation` holds. Stops at zero, since an inventory may shrink under its leases: false says that it did.
    pub fn hold(&mut self, allocation: &Allocation) -> bool {
        let mut whole = true;
        if self.cores != u32::MAX {
            whole &= self.cores >= allocation.cores;
            self.cores = self.cores.saturating_sub(allocation.cores);
        }
        if self.memory_bytes != u64::MAX {
            whole &= self.memory_bytes >= allocation.memory_bytes;
            self.memory_bytes = self.memory_bytes.saturating_sub(allocation.memory_bytes);
        }
        for share in &allocation.gpus {
            let Some(gpu) = self.gpus.iter_mut().find(|gpu| gpu.index == share.index) else {
                whole = false;
                continue;
            };
            whole &= gpu.free_bytes >= share.vram_bytes;
            gpu.free_bytes = gpu.free_bytes.saturating_sub(share.vram_bytes);
            gpu.holders += 1;
        }
        whole
    }

    /// Gives back what [`Self::hold`] took as a whole.
    pub fn give(&mut self, allocation: &Allocation) {
        if self.cores != u32::MAX {
            self.cores += allocation.cores;
        }
        if self.memory_bytes != u64::MAX {
            self.memory_bytes += allocation.memory_bytes;
        }
        for share in &allocation.gpus {
            if let Some(gpu) = self.gpus.iter_mut().find(|gpu| gpu.index == share.index) {
                gpu.free_bytes += share.vram_bytes;
                gpu.holders -= 1;
            }
        }
    }

    /// What `demand` would take here for a job of this depth, GPUs from the lowest index on (compatibility §8.3); none if it does not fit
    /// now.
    pub fn fit(&self, inventory: &Inventory, demand: &Demand, depth: u32) -> Option<Allocation> {
        if self.has_place(demand.place, depth) { self.hardware_for(inventory, demand) } else { None }
    }

    /// The same without a look at the places.
    pub fn hardware_for(&self, inventory: &Inventory, demand: &Demand) -> Option<Allocation> {
        let (cores, memory_bytes) = (amount::cores(demand, inventory), amount::memory_bytes(demand, inventory));
        if self.cores < cores || self.memory_bytes < memory_bytes {
            return None;
        }
        let wanted = amount::gpus(demand, inventory) as usize;
        let gpus: Vec<_> = self.shares(inventory, demand).take(wanted).collect();
        (gpus.len() == wanted).then_some(Allocation { cores, memory_bytes, gpus, place: demand.place })
    }

    /// What `demand` could take of each GPU that has room for it.
    ///
    /// Where an operator declared the inventory the rules of compatibility §8.2 hold: a GPU has one holder, and one of unknown
    /// size has no amount of memory while the size of others is known. A probed GPU is shared by bytes.
    pub fn shares(&self, inventory: &Inventory, demand: &Demand) -> impl Iterator<Item = GpuShare> {
        let sized = demand.vram_bytes > 0 && self.gpus.iter().any(|gpu| gpu.total_bytes > 0);
        let offered = move |gpu: &&GpuFree| gpu.holders == 0 && !(sized && gpu.total_bytes == 0);
        let declared = inventory.declared;
        self.gpus.iter().filter(move |gpu| !declared || offered(gpu)).filter_map(|gpu| gpu.share(demand.vram_bytes))
    }

    /// Whether a job of this depth may start here, `allocation` is free and is what `demand` takes: the same amounts, on any of the
    /// free GPUs, by bytes. Who plans may ask for more ([`Self::shares`]).
    pub fn admits(&self, inventory: &Inventory, demand: &Demand, allocation: &Allocation, depth: u32) -> bool {
        let Allocation { cores, memory_bytes, gpus, place } = allocation;
        let amounts =
            *cores == amount::cores(demand, inventory) && *memory_bytes == amount::memory_bytes(demand, inventory);
        let room = self.has_place(*place, depth) && self.cores >= *cores && self.memory_bytes >= *memory_bytes;
        let ascending = gpus.windows(2).all(|pair| pair[0].index < pair[1].index);
        let offered = |share: &GpuShare| {
            let gpu = self.gpus.iter().find(|gpu| gpu.index == share.index);
            gpu.and_then(|gpu| gpu.share(demand.vram_bytes)) == Some(*share)
        };
        amounts
            && *place == demand.place
            && room
            && ascending
            && gpus.len() == amount::gpus(demand, inventory) as usize
            && gpus.iter().all(offered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use atlas_types::{Architecture, BootId, Node, NodeId, Timestamp};

    use crate::suits;

    fn gpu(index: u32, memory_bytes: u64) -> Gpu {
        let healthy = true;
        let (uuid, vendor, model) = (String::new(), "nvidia".to_owned(), String::new());
        Gpu { index, uuid, vendor, model, memory_bytes, mig_profile: None, healthy }
    }

    #[test]
    fn small_demands_share_a_gpu_by_bytes_and_a_whole_one_needs_it_empty() {
        let inventory = Inventory { places: 4, gpus: vec![gpu(0, 80), gpu(1, 80)], ..Inventory::default() };
        let mut free = Free::of(&inventory);
        let small = Demand { gpus: 1, vram_bytes: 30, ..Demand::default() };
        let whole = Demand { gpus: 1, ..Demand::default() };
        let first = free.fit(&inventory, &small, 0).expect("both are empty");
        assert_eq!(first.gpus, [GpuShare { index: 0, vram_bytes: 30 }]);
        assert!(free.take(&first, 0));
        assert_eq!(free.fit(&inventory, &small, 0).expect("50 are left").gpus[0].index, 0);
        let all = free.fit(&inventory, &whole, 0).expect("the second is empty");
        assert_eq!(all.gpus, [GpuShare { index: 1, vram_bytes: 80 }]);
        assert!(free.take(&all, 0));
        assert_eq!(free.fit(&inventory, &whole, 0), None);
        assert!(!free.admits(&inventory, &whole, &all, 0), "taken meanwhile");
        for taken in [&all, &first] {
            free.give(taken);
            free.change_permits(taken.place, |permits| permits.remove(0, false));
        }
        assert_eq!(free, Free::of(&inventory));
    }

    #[test]
    fn a_declared_gpu_has_one_holder() {
        let gpus = vec![gpu(0, 24), gpu(1, 48), gpu(2, 0)];
        let inventory = Inventory { places: 4, gpus, declared: true, ..Inventory::default() };
        let mut free = Free::of(&inventory);
        let small = Demand { gpus: 1, vram_bytes: 8, ..Demand::default() };
        let indexes = |free: &Free| -> Vec<u32> { free.shares(&inventory, &small).map(|share| share.index).collect() };
        assert_eq!(indexes(&free), [0, 1], "the size of the third is not known");
        free.gpus[0].holders = 1;
        assert_eq!(indexes(&free), [1]);
        let any = Demand { vram_bytes: 0, ..small.clone() };
        assert_eq!(free.shares(&inventory, &any).map(|share| share.index).collect::<Vec<_>>(), [1, 2]);
        let unsized_one = Inventory { gpus: vec![gpu(0, 0)], ..inventory };
        assert!(Free::of(&unsized_one).hardware_for(&unsized_one, &small).is_some(), "no amount is checked");
    }

    #[test]
    fn defaults_count_only_where_the_inventory_was_declared() {
        let demand = Demand::default();
        let probed = Inventory { places: 1, cores: 1, memory_bytes: 1 << 29, ..Inventory::default() };
        assert!(Free::of(&probed).fit(&probed, &demand, 0).is_some());
        let declared = Inventory { declared: true, ..probed };
        assert_eq!(Free::of(&declared).fit(&declared, &demand, 0), None);
    }

    #[test]
    fn without_checks_any_demand_fits_and_takes_a_place_alone() {
        let architecture = Some(Architecture::Arm64);
        let inventory = Inventory { places: 1, cores: 1, architecture, unchecked: true, ..Inventory::default() };
        let demand = Demand {
            cores: 64,
            memory_bytes: 1 << 50,
            gpus: 8,
            vram_bytes: 1 << 40,
            architecture: Some(Architecture::X86_64),
            devices: vec!["/dev/x".to_owned()],
            ..Demand::default()
        };
        let mut free = Free::of(&inventory);
        let taken = free.fit(&inventory, &demand, 0).expect("nothing is checked");
        assert_eq!(taken, Allocation::default());
        let name = NodeId::new("n1").expect("a name");
        assert!(suits(&demand, &Node::new(name, BootId(1), inventory.clone(), Timestamp(1))));
        assert!(free.admits(&inventory, &demand, &taken, 0) && free.take(&taken, 0));
        assert_eq!(free.fit(&inventory, &demand, 0), None, "the place is taken");
    }

    #[test]
    fn the_kinds_of_places_are_counted_apart() {
        let inventory = Inventory { places: 1, llm_places: 2, cores: 1, declared: true, ..Inventory::default() };
        let (process, llm) = (Demand::default(), Demand { place: Place::Llm, ..Demand::default() });
        let mut free = Free::of(&inventory);
        let taken = free.fit(&inventory, &process, 0).expect("it is empty");
        assert!(free.take(&taken, 0));
        assert_eq!(free.fit(&inventory, &process, 0), None);
        for _ in 0..2 {
            let taken = free.fit(&inventory, &llm, 0).expect("another kind, and it takes no core by default");
            assert!(!free.admits(&inventory, &process, &taken, 0) && free.take(&taken, 0));
        }
        assert_eq!((free.fit(&inventory, &llm, 0), free.processes.free, free.llm.free), (None, 0, 0));
    }

    #[test]
    fn a_place_is_lent_to_its_own_kind() {
        let inventory = Inventory { places: 1, llm_places: 1, ..Inventory::default() };
        let mut free = Free::of(&inventory);
        for place in [Place::Process, Place::Llm] {
            free.change_permits(place, |permits| permits.add(0));
        }
        free.change_permits(Place::Llm, |permits| permits.wait(0));
        assert!(free.lends() && free.has_place(Place::Llm, 1) && !free.has_place(Place::Process, 1));
    }

    #[test]
    fn a_device_that_is_named_twice_is_there_once() {
        let inventory = Inventory { places: 2, gpus: vec![gpu(0, 80), gpu(0, 80)], ..Inventory::default() };
        let two = Demand { gpus: 2, ..Demand::default() };
        assert_eq!(Free::of(&inventory).fit(&inventory, &two, 0), None);
    }

    #[test]
    fn a_device_of_unknown_size_is_taken_whole() {
        let inventory = Inventory { places: 2, gpus: vec![gpu(0, 0)], ..Inventory::default() };
        let mut free = Free::of(&inventory);
        let demand = Demand { gpus: 1, vram_bytes: 1 << 40, ..Demand::default() };
        let taken = free.fit(&inventory, &demand, 0).expect("no check is made");
        assert!(free.take(&taken, 0));
        assert_eq!(free.fit(&inventory, &demand, 0), None);
    }
}
