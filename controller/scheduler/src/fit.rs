//! Decides whether a demand fits a node. Plans and explanations use this decision.

use std::fmt;

use atlas_allocation::{Free, amount, has_architecture, has_devices, has_labels, has_nodejs, has_python, suits};
use atlas_types::{Allocation, Demand, Node, NodeHealth, Place};

use crate::cluster::NodeView;
use crate::describe::{architecture, gigabytes};

/// A property in which a node may not satisfy a demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dimension {
    /// The node is down, cordoned or draining, or its circuit is open.
    Availability,
    /// The node is not the pinned one.
    Pin,
    /// The processor family.
    Architecture,
    /// A device file.
    Device,
    Label,
    /// A Python interpreter.
    Python,
    NodeJs,
    Place,
    Cores,
    /// Main memory.
    Memory,
    /// GPUs with enough memory.
    Gpu,
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Availability => "not accepting new leases",
            Self::Pin => "not the pinned node",
            Self::Architecture => "another architecture",
            Self::Device => "without the device",
            Self::Label => "without the label",
            Self::Python => "without Python",
            Self::NodeJs => "without Node.js",
            Self::Place => "no free concurrency permit",
            Self::Cores => "too few cores",
            Self::Memory => "too little memory",
            Self::Gpu => "no GPU with free capacity",
        })
    }
}

const ALL: [Dimension; 11] = [
    Dimension::Availability,
    Dimension::Pin,
    Dimension::Architecture,
    Dimension::Device,
    Dimension::Label,
    Dimension::Python,
    Dimension::NodeJs,
    Dimension::Place,
    Dimension::Cores,
    Dimension::Memory,
    Dimension::Gpu,
];

/// The dimensions in which a node does not fit, as bits, because the check runs for every node that a plan skips.
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

/// The allocation of a lease for `demand` of a job of this depth. None if the node accepts no leases or `demand` does
/// not fit now.
pub fn allocate(demand: &Demand, depth: u32, view: NodeView<'_>) -> Option<Allocation> {
    let NodeView { node, free } = view;
    let suits = takes_leases(node) && suits(demand, node);
    if suits { free.fit(&node.inventory, demand, depth) } else { None }
}

/// True if `node` could run `demand` if it had no leases, all its GPUs worked, and it were ready and accepted leases.
pub fn could_ever(demand: &Demand, node: &Node) -> bool {
    let inventory = &node.inventory;
    suits(demand, node) && Free::at_best(inventory).fit(inventory, demand, 0).is_some()
}

fn takes_leases(node: &Node) -> bool {
    node.health == NodeHealth::Ready && !node.cordoned && !node.draining && node.circuit.admits()
}

/// The dimensions in which a node does not fit `demand`. Empty exactly when [`allocate`] returns an allocation.
pub(crate) fn short_now(demand: &Demand, depth: u32, view: NodeView<'_>) -> Short {
    let NodeView { node, free } = view;
    let inventory = &node.inventory;
    let mut short = Short::default();
    short.note(Dimension::Availability, !takes_leases(node));
    short.note(Dimension::Pin, demand.node.as_ref().is_some_and(|wanted| *wanted != node.id));
    short.note(Dimension::Architecture, !has_architecture(demand, inventory));
    short.note(Dimension::Device, !has_devices(demand, inventory));
    short.note(Dimension::Label, !has_labels(demand, node));
    short.note(Dimension::Python, !has_python(demand, node));
    short.note(Dimension::NodeJs, !has_nodejs(demand, node));
    short.note(Dimension::Place, !free.has_place(demand.place, depth));
    short.note(Dimension::Cores, free.cores < amount::cores(demand, inventory));
    short.note(Dimension::Memory, free.memory_bytes < amount::memory_bytes(demand, inventory));
    short.note(Dimension::Gpu, free.shares(inventory, demand).count() < amount::gpus(demand, inventory) as usize);
    short
}

/// The dimensions in which one node does not fit, with the amounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// The dimension.
    pub dimension: Dimension,
    /// What the job needs, as text.
    pub wanted: String,
    /// What the node has free, as text.
    pub free: String,
}

impl Shortage {
    pub(crate) fn of(dimension: Dimension, demand: &Demand, view: NodeView<'_>) -> Self {
        let NodeView { node, free: left } = view;
        let inventory = &node.inventory;
        let (wanted, free) = match dimension {
            Dimension::Availability => ("a node that accepts leases".to_owned(), availability(node).to_owned()),
            Dimension::Pin => (demand.node.as_ref().map_or_else(String::new, ToString::to_string), node.id.to_string()),
            Dimension::Architecture => {
                (architecture(demand.architecture).to_owned(), architecture(inventory.architecture).to_owned())
            }
            Dimension::Device => (demand.devices.join(" "), inventory.devices.join(" ")),
            Dimension::Label => {
                let pairs: Vec<String> = demand.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
                let found = demand.labels.keys().map(|name| node.label(name).unwrap_or("none"));
                (pairs.join(" "), found.collect::<Vec<_>>().join(" "))
            }
            Dimension::Python => ("Python".to_owned(), String::new()),
            Dimension::NodeJs => ("Node.js".to_owned(), String::new()),
            Dimension::Place => {
                let kind = match demand.place {
                    Place::Process => "",
                    Place::Llm => " for an llm agent",
                };
                let (free, total) = (left.places(demand.place).free, inventory.places_of(demand.place));
                (format!("1 concurrency permit{kind}"), format!("{free} of {total}"))
            }
            Dimension::Cores => (
                format!("{} cores", amount::cores(demand, inventory)),
                format!("{} of {}", left.cores, inventory.cores),
            ),
            Dimension::Memory => {
                let wanted = format!("{} memory", gigabytes(amount::memory_bytes(demand, inventory)));
                (wanted, format!("{} of {}", gigabytes(left.memory_bytes), gigabytes(inventory.memory_bytes)))
            }
            Dimension::Gpu => {
                let wanted = Demand { gpus: demand.gpus, vram_bytes: demand.vram_bytes, ..Demand::default() };
                (
                    crate::describe(&wanted),
                    format!("{} of {}", left.shares(inventory, demand).count(), inventory.gpus.len()),
                )
            }
        };
        Self { dimension, wanted, free }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "needs {}, has {}", self.wanted, if self.free.is_empty() { "none" } else { &self.free })
    }
}

fn availability(node: &Node) -> &'static str {
    match node.health {
        NodeHealth::Down => "one that is down",
        NodeHealth::Ready if node.draining => "one that is draining",
        NodeHealth::Ready if node.cordoned => "one that is cordoned",
        NodeHealth::Ready if !node.circuit.admits() => "one on which jobs keep failing",
        NodeHealth::Ready => "one that is ready",
    }
}
