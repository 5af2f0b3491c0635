//! The hardware of a node: cores, memory, architecture, GPUs.
//!
//! Probing the machine ([`HostProbe`], [`GpuProbe`]) is separate from interpreting the results ([`inventory_of`]), so
//! that other machines can be tested from recorded data. How many jobs fit on a node is not decided here.

mod cgroup;
mod declared;
mod gpu;
mod health;
mod host;
mod line;

use atlas_types::{Architecture, Inventory};

pub use cgroup::{CgroupLimits, limits as cgroup_limits};
pub use declared::DeclaredHardware;
pub use gpu::{GpuFacts, GpuProbe, MigFacts, NvmlProbe};
pub use health::changed;
pub use host::{HostFacts, HostProbe, SystemHost};
pub use line::line;

/// Why a machine could not be queried.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The operating system did not answer.
    #[error("could not query the operating system")]
    Host(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The GPU driver exists but did not answer.
    #[error("could not query the GPU driver")]
    Gpu(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The inventory of this machine, or the one that the operator declared.
pub fn probe(declared: &DeclaredHardware, gpus: &dyn GpuProbe) -> Result<Inventory, ProbeError> {
    match declared.inventory() {
        Some(inventory) => Ok(inventory),
        None => inventory_of(&SystemHost::default(), gpus),
    }
}

/// Builds an inventory from the results of the probes.
pub fn inventory_of(host: &impl HostProbe, gpus: &dyn GpuProbe) -> Result<Inventory, ProbeError> {
    let facts = host.facts()?;
    let gpus = gpus.gpus()?.into_iter().flat_map(GpuFacts::into_devices).collect();
    Ok(Inventory {
        cores: facts.cores,
        memory_bytes: facts.memory_bytes,
        architecture: architecture(&facts.architecture),
        gpus,
        places: facts.cores.max(4),
        ..Inventory::default()
    })
}

/// Parses a processor family's name as used in contracts, flags and operating systems.
pub fn architecture(word: &str) -> Option<Architecture> {
    match word {
        "x86_64" | "amd64" => Some(Architecture::X86_64),
        "arm64" | "aarch64" => Some(Architecture::Arm64),
        _ => None,
    }
}
