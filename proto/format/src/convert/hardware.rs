//! Hardware of a node and demands of a job.

use atlas_types::{Allocation, Architecture, Demand, Gpu, GpuShare, Inventory, NodeId, Place};

use super::{labels_in, labels_out, name};
use crate::{FormatError, proto};

fn architecture_out(architecture: Option<Architecture>) -> i32 {
    let message = match architecture {
        None => proto::Architecture::Unspecified,
        Some(Architecture::X86_64) => proto::Architecture::X8664,
        Some(Architecture::Arm64) => proto::Architecture::Arm64,
    };
    message.into()
}

fn architecture_in(field: &'static str, found: i32) -> Result<Option<Architecture>, FormatError> {
    match proto::Architecture::try_from(found) {
        Ok(proto::Architecture::Unspecified) => Ok(None),
        Ok(proto::Architecture::X8664) => Ok(Some(Architecture::X86_64)),
        Ok(proto::Architecture::Arm64) => Ok(Some(Architecture::Arm64)),
        Err(unknown) => Err(FormatError::Value { field, found: unknown.0.into() }),
    }
}

fn place_out(place: Place) -> i32 {
    let message = match place {
        Place::Process => proto::Place::Unspecified,
        Place::Llm => proto::Place::Llm,
    };
    message.into()
}

fn place_in(field: &'static str, found: i32) -> Result<Place, FormatError> {
    match proto::Place::try_from(found) {
        Ok(proto::Place::Unspecified) => Ok(Place::Process),
        Ok(proto::Place::Llm) => Ok(Place::Llm),
        Err(unknown) => Err(FormatError::Value { field, found: unknown.0.into() }),
    }
}

impl From<&Gpu> for proto::Gpu {
    fn from(gpu: &Gpu) -> Self {
        Self {
            index: gpu.index,
            uuid: gpu.uuid.clone(),
            vendor: gpu.vendor.clone(),
            model: gpu.model.clone(),
            memory_bytes: gpu.memory_bytes,
            mig_profile: gpu.mig_profile.clone(),
            healthy: gpu.healthy,
        }
    }
}

impl From<proto::Gpu> for Gpu {
    fn from(gpu: proto::Gpu) -> Self {
        Self {
            index: gpu.index,
            uuid: gpu.uuid,
            vendor: gpu.vendor,
            model: gpu.model,
            memory_bytes: gpu.memory_bytes,
            mig_profile: gpu.mig_profile,
            healthy: gpu.healthy,
        }
    }
}

impl From<&Inventory> for proto::Inventory {
    fn from(inventory: &Inventory) -> Self {
        Self {
            cores: inventory.cores,
            memory_bytes: inventory.memory_bytes,
            architecture: architecture_out(inventory.architecture),
            gpus: inventory.gpus.iter().map(proto::Gpu::from).collect(),
            devices: inventory.devices.clone(),
            labels: labels_out(&inventory.labels),
            places: inventory.places,
            declared: inventory.declared,
            unchecked: inventory.unchecked,
            llm_places: inventory.llm_places,
        }
    }
}

impl TryFrom<proto::Inventory> for Inventory {
    type Error = FormatError;

    fn try_from(inventory: proto::Inventory) -> Result<Self, FormatError> {
        Ok(Self {
            cores: inventory.cores,
            memory_bytes: inventory.memory_bytes,
            architecture: architecture_in("inventory.architecture", inventory.architecture)?,
            gpus: inventory.gpus.into_iter().map(Gpu::from).collect(),
            devices: inventory.devices,
            labels: labels_in("inventory.labels", inventory.labels)?,
            places: inventory.places,
            declared: inventory.declared,
            unchecked: inventory.unchecked,
            llm_places: inventory.llm_places,
        })
    }
}

impl From<&Demand> for proto::Demand {
    fn from(demand: &Demand) -> Self {
        Self {
            cores: demand.cores,
            memory_bytes: demand.memory_bytes,
            gpus: demand.gpus,
            vram_bytes: demand.vram_bytes,
            architecture: architecture_out(demand.architecture),
            devices: demand.devices.clone(),
            labels: labels_out(&demand.labels),
            node_id: demand.node.as_ref().map(NodeId::to_string),
            place: place_out(demand.place),
            python: demand.python,
        }
    }
}

impl TryFrom<proto::Demand> for Demand {
    type Error = FormatError;

    fn try_from(demand: proto::Demand) -> Result<Self, FormatError> {
        Ok(Self {
            cores: demand.cores,
            memory_bytes: demand.memory_bytes,
            gpus: demand.gpus,
            vram_bytes: demand.vram_bytes,
            architecture: architecture_in("demand.architecture", demand.architecture)?,
            devices: demand.devices,
            labels: labels_in("demand.labels", demand.labels)?,
            node: demand.node_id.map(|text| name("demand.node_id", &text, NodeId::new)).transpose()?,
            place: place_in("demand.place", demand.place)?,
            python: demand.python,
        })
    }
}

impl From<&Allocation> for proto::Allocation {
    fn from(allocation: &Allocation) -> Self {
        let share = |share: &GpuShare| proto::GpuShare { index: share.index, vram_bytes: share.vram_bytes };
        Self {
            cores: allocation.cores,
            memory_bytes: allocation.memory_bytes,
            gpus: allocation.gpus.iter().map(share).collect(),
            place: place_out(allocation.place),
        }
    }
}

impl TryFrom<proto::Allocation> for Allocation {
    type Error = FormatError;

    fn try_from(allocation: proto::Allocation) -> Result<Self, FormatError> {
        let share = |share: proto::GpuShare| GpuShare { index: share.index, vram_bytes: share.vram_bytes };
        Ok(Self {
            cores: allocation.cores,
            memory_bytes: allocation.memory_bytes,
            gpus: allocation.gpus.into_iter().map(share).collect(),
            place: place_in("allocation.place", allocation.place)?,
        })
    }
}
