//! Hardware of a node and demands of a job. Amounts are integers with a unit; hardware is data, never an enum of models.

use std::collections::{BTreeMap, BTreeSet};

use crate::{NodeId, label_bytes};

/// A processor family, as contracts name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Architecture {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    Arm64,
}

impl Architecture {
    /// The word that contracts, flags and tables use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Arm64 => "arm64",
        }
    }
}

/// One GPU (or one MIG slice, which is a device of its own).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// The index by which a process is confined to it.
    pub index: u32,
    /// The vendor's unique id; empty if unknown.
    pub uuid: String,
    /// Who makes it, lower case: `nvidia`.
    pub vendor: String,
    /// The vendor's model name.
    pub model: String,
    /// Its memory; 0 means that the amount is not known and no check is made (compatibility §8.2).
    pub memory_bytes: u64,
    /// Set for a MIG slice: the profile, such as `1g.10gb`.
    pub mig_profile: Option<String>,
    /// False once the driver reports it lost or broken; it then gets no jobs.
    pub healthy: bool,
}

/// All hardware of a node, as it advertises it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inventory {
    /// Processor cores; 0 means untracked (compatibility §8.2).
    pub cores: u32,
    /// Main memory; 0 means untracked.
    pub memory_bytes: u64,
    /// Processor family; none matches every job.
    pub architecture: Option<Architecture>,
    /// GPUs by index.
    pub gpus: Vec<Gpu>,
    /// Device files that jobs may share.
    pub devices: Vec<String>,
    /// Free-form labels.
    pub labels: BTreeMap<String, String>,
    /// How many jobs with a process may run at once.
    pub places: u32,
    /// How many jobs that call a model and wait may run at once, beside [`Self::places`]; 0 from programs below feature level 6.
    pub llm_places: u32,
    /// True when an operator gave the amounts by flags: then the contract's defaults (1 core, 1 GB) count as well (compatibility §8).
    pub declared: bool,
    /// True when an operator switched hardware checks off: any demand fits while there is a place, and takes nothing but it
    /// (compatibility §8.1). Labels and the pinned node are no hardware and count still.
    pub unchecked: bool,
}

impl Inventory {
    /// How many places of a kind the node has.
    pub fn places_of(&self, place: Place) -> u32 {
        match place {
            Place::Process => self.places,
            Place::Llm => self.llm_places,
        }
    }

    /// The index of a GPU that is listed more than once, if there is one: its memory and health would be ambiguous.
    pub fn gpu_listed_twice(&self) -> Option<u32> {
        let mut seen = BTreeSet::new();
        self.gpus.iter().map(|gpu| gpu.index).find(|index| !seen.insert(*index))
    }

    /// Bytes of all its texts: what bounds the room that it takes in the state.
    pub fn text_bytes(&self) -> u64 {
        let gpus = self.gpus.iter().map(|gpu| {
            gpu.uuid.len() + gpu.vendor.len() + gpu.model.len() + gpu.mig_profile.as_ref().map_or(0, String::len)
        });
        let devices = self.devices.iter().map(String::len);
        label_bytes(&self.labels) + gpus.chain(devices).sum::<usize>() as u64
    }
}

/// Which kind of place a job takes on its node. Each kind is counted for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Place {
    /// It runs a process: one of [`Inventory::places`].
    #[default]
    Process,
    /// It calls a model and mostly waits: one of [`Inventory::llm_places`].
    Llm,
}

impl Place {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Process, Self::Llm];
}

/// What one job of an agent version asks of a node. Zero, none and empty mean "no matter".
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Demand {
    /// Cores stated by the contract.
    pub cores: u32,
    /// Memory stated by the contract.
    pub memory_bytes: u64,
    /// GPUs, each with [`Self::vram_bytes`] free.
    pub gpus: u32,
    /// Memory wanted on each of the GPUs; 0 takes a whole free GPU.
    pub vram_bytes: u64,
    /// Processor family.
    pub architecture: Option<Architecture>,
    /// Device files that the node must have.
    pub devices: Vec<String>,
    /// Labels that the node must have with these values.
    pub labels: BTreeMap<String, String>,
    /// The only node that may run it.
    pub node: Option<NodeId>,
    /// The kind of place that it takes.
    pub place: Place,
    /// A Python interpreter, which nodes with the label [`PYTHON`](Self::PYTHON) `none` do not have.
    pub python: bool,
    /// Node.js, which nodes with the label [`NODE`](Self::NODE) `none` do not have.
    pub nodejs: bool,
}

impl Demand {
    /// The label that the worker of a node without a Python interpreter sets to [`NONE`](Self::NONE).
    pub const PYTHON: &str = "python";
    /// The label that the worker of a node without Node.js sets to [`NONE`](Self::NONE).
    pub const NODE: &str = "node";
    /// The value of [`PYTHON`](Self::PYTHON) and of [`NODE`](Self::NODE).
    pub const NONE: &str = "none";
}

/// The part of one GPU that a lease holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GpuShare {
    /// Index of the GPU on its node.
    pub index: u32,
    /// Memory held; a demand without an amount holds all of the device.
    pub vram_bytes: u64,
}

/// What a lease holds of its node. The lease *is* the allocation: nothing else counts what is taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allocation {
    /// Cores held.
    pub cores: u32,
    /// Memory held.
    pub memory_bytes: u64,
    /// GPU shares held.
    pub gpus: Vec<GpuShare>,
    /// The kind of place held.
    pub place: Place,
}
