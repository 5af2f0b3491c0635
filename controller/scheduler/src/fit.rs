//! Whether a demand fits a node: the one decision behind plans and explanations.

use std::fmt;

use atlas_types::{Allocation, Demand, GpuShare, Inventory, Node, NodeHealth};

use crate::cluster::Held;
use crate::describe::{architecture, gigabytes};

/// One thing in which a node can fall short of a demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dimension {
    /// It is down, cordoned or draining.
    Availability,
    /// It is not the pinned node.
    Pin,
    /// Its processor family.
    Architecture,
    /// A device file.
    Device,
    /// A label.
    Label,
    /// A place.
    Place,
    /// Cores.
    Cores,
    /// Main memory.
    Memory,
    /// GPUs with enough memory.
    Gpu,
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Availability => "taking no new leases",
            Self::Pin => "not the pinned node",
            Self::Architecture => "another architecture",
            Self::Device => "without the device",
            Self::Label => "without the label",
            Self::Place => "no free place",
            Self::Cores => "too few cores",
            Self::Memory => "too little memory",
            Self::Gpu => "no GPU with room",
        })
    }
}

const ALL: [Dimension; 9] = [
    Dimension::Availability,
    Dimension::Pin,
    Dimension::Architecture,
    Dimension::Device,
    Dimension::Label,
    Dimension::Place,
    Dimension::Cores,
    Dimension::Memory,
    Dimension::Gpu,
];

/// The dimensions in which a node falls short, as bits: the check runs for every node that a plan passes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Short(u16);

impl Short {
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn count(self) -> u32 {
        self.0.count_ones()
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Dimension> {
        ALL.into_iter().filter(move |&dimension| self.0 & 1 << dimension as u16 != 0)
    }

    fn note(&mut self, dimension: Dimension, short: bool) {
        self.0 |= u16::from(short) << dimension as u16;
    }
}

/// In what `node` falls short of `demand` while its leases hold `held`.
pub(crate) fn short_now(demand: &Demand, node: &Node, held: &Held) -> Short {
    let inventory = &node.inventory;
    let mut short = short_as_built(demand, node);
    let open = node.health == NodeHealth::Ready && !node.cordoned && !node.draining;
    short.note(Dimension::Availability, !open);
    short.note(Dimension::Place, held.places_free(node) == 0);
    short.note(Dimension::Cores, !amount_fits(cores(demand, inventory), inventory.cores.into(), held.cores));
    let memory_bytes = demand.memory_bytes_on(inventory);
    short.note(Dimension::Memory, !amount_fits(memory_bytes, inventory.memory_bytes, held.memory_bytes));
    short.note(Dimension::Gpu, gpu_shares(demand, inventory, held).count() < demand.gpus as usize);
    short
}

/// In what `node` would fall short of `demand` if it held nothing and took leases: what waiting cannot change.
fn short_as_built(demand: &Demand, node: &Node) -> Short {
    let inventory = &node.inventory;
    let mut short = Short::default();
    short.note(Dimension::Pin, demand.node.as_ref().is_some_and(|wanted| *wanted != node.id));
    let differs = |wanted| inventory.architecture.is_some_and(|found| found != wanted);
    short.note(Dimension::Architecture, demand.architecture.is_some_and(differs));
    short.note(Dimension::Device, demand.devices.iter().any(|device| !inventory.devices.contains(device)));
    let missing = |(name, value)| inventory.labels.get(name) != Some(value);
    short.note(Dimension::Label, demand.labels.iter().any(missing));
    short.note(Dimension::Place, inventory.places == 0);
    short.note(Dimension::Cores, !amount_fits(cores(demand, inventory), inventory.cores.into(), 0));
    short.note(Dimension::Memory, !amount_fits(demand.memory_bytes_on(inventory), inventory.memory_bytes, 0));
    // A GPU that is broken today counts: it may be repaired, and a job must not fail for a passing fault.
    let large_enough =
        inventory.gpus.iter().filter(|gpu| gpu.memory_bytes == 0 || demand.vram_bytes <= gpu.memory_bytes);
    short.note(Dimension::Gpu, large_enough.take(demand.gpus as usize).count() < demand.gpus as usize);
    short
}

/// True if `node` could run `demand` with all its leases gone, up and open for new ones.
pub fn could_ever(demand: &Demand, node: &Node) -> bool {
    short_as_built(demand, node).is_empty()
}

/// What a lease for `demand` takes of `node` while its leases hold `held`; none if it does not fit.
pub fn allocate(demand: &Demand, node: &Node, held: &Held) -> Option<Allocation> {
    short_now(demand, node, held).is_empty().then(|| Allocation {
        cores: demand.cores_on(&node.inventory),
        memory_bytes: demand.memory_bytes_on(&node.inventory),
        gpus: gpu_shares(demand, &node.inventory, held).collect(),
    })
}

/// The GPUs that a lease gets: the lowest indexes with room, at most as many as it asks for.
fn gpu_shares<'a>(demand: &'a Demand, inventory: &'a Inventory, held: &'a Held) -> impl Iterator<Item = GpuShare> + 'a {
    let shares = inventory.gpus.iter().filter_map(|gpu| {
        let vram_bytes = held.share_of(gpu, demand.vram_bytes)?;
        Some(GpuShare { index: gpu.index, vram_bytes })
    });
    shares.take(demand.gpus as usize)
}

fn cores(demand: &Demand, inventory: &Inventory) -> u64 {
    demand.cores_on(inventory).into()
}

/// A total of 0 is untracked: no check is made (spec §8.2).
fn amount_fits(wanted: u64, total: u64, held: u64) -> bool {
    total == 0 || wanted <= total.saturating_sub(held)
}

/// In what one node falls short, with the amounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// In what.
    pub dimension: Dimension,
    /// What the job asks for, in words.
    pub wanted: String,
    /// What the node has free, in words.
    pub free: String,
}

impl Shortage {
    pub(crate) fn of(dimension: Dimension, demand: &Demand, node: &Node, held: &Held) -> Self {
        let inventory = &node.inventory;
        let (wanted, free) = match dimension {
            Dimension::Availability => ("a node that takes leases".to_owned(), availability(node).to_owned()),
            Dimension::Pin => (demand.node.as_ref().map_or_else(String::new, ToString::to_string), node.id.to_string()),
            Dimension::Architecture => {
                (architecture(demand.architecture).to_owned(), architecture(inventory.architecture).to_owned())
            }
            Dimension::Device => (demand.devices.join(" "), inventory.devices.join(" ")),
            Dimension::Label => {
                let pairs: Vec<String> = demand.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
                let found = demand.labels.keys().map(|name| inventory.labels.get(name).map_or("none", String::as_str));
                (pairs.join(" "), found.collect::<Vec<_>>().join(" "))
            }
            Dimension::Place => ("1 place".to_owned(), format!("{} of {}", held.places_free(node), inventory.places)),
            Dimension::Cores => {
                let free = u64::from(inventory.cores).saturating_sub(held.cores);
                (format!("{} cores", demand.cores_on(inventory)), format!("{free} of {}", inventory.cores))
            }
            Dimension::Memory => {
                let free = inventory.memory_bytes.saturating_sub(held.memory_bytes);
                let wanted = format!("{} memory", gigabytes(demand.memory_bytes_on(inventory)));
                (wanted, format!("{} of {}", gigabytes(free), gigabytes(inventory.memory_bytes)))
            }
            Dimension::Gpu => {
                let only = Demand { node: None, ..demand.clone() };
                let wanted = Demand { gpus: demand.gpus, vram_bytes: demand.vram_bytes, ..Demand::default() };
                let found = gpu_shares(&only, inventory, held).count();
                (crate::describe(&wanted), format!("{found} of {}", inventory.gpus.len()))
            }
        };
        Self { dimension, wanted, free }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wants {}, has {}", self.wanted, if self.free.is_empty() { "none" } else { &self.free })
    }
}

fn availability(node: &Node) -> &'static str {
    match node.health {
        NodeHealth::Down => "one that is down",
        NodeHealth::Ready if node.draining => "one that is draining",
        NodeHealth::Ready if node.cordoned => "one that is cordoned",
        NodeHealth::Ready => "one that is ready",
    }
}
