//! Hardware of a node and demands of a job.

use atlas_types::{Allocation, Architecture, Demand, Gpu, GpuShare, Inventory, Place};

use super::table::{Field, table};
use crate::{FormatError, proto};

/// None is the unspecified value.
impl Field<i32> for Option<Architecture> {
    fn write(&self) -> i32 {
        let message = match self {
            None => proto::Architecture::Unspecified,
            Some(Architecture::X86_64) => proto::Architecture::X8664,
            Some(Architecture::Arm64) => proto::Architecture::Arm64,
        };
        message.into()
    }

    fn read(field: &'static str, found: i32) -> Result<Self, FormatError> {
        match proto::Architecture::try_from(found) {
            Ok(proto::Architecture::Unspecified) => Ok(None),
            Ok(proto::Architecture::X8664) => Ok(Some(Architecture::X86_64)),
            Ok(proto::Architecture::Arm64) => Ok(Some(Architecture::Arm64)),
            Err(unknown) => Err(FormatError::Value { field, found: unknown.0.into() }),
        }
    }
}

/// A process is the unspecified value.
impl Field<i32> for Place {
    fn write(&self) -> i32 {
        let message = match self {
            Self::Process => proto::Place::Unspecified,
            Self::Llm => proto::Place::Llm,
        };
        message.into()
    }

    fn read(field: &'static str, found: i32) -> Result<Self, FormatError> {
        match proto::Place::try_from(found) {
            Ok(proto::Place::Unspecified) => Ok(Self::Process),
            Ok(proto::Place::Llm) => Ok(Self::Llm),
            Err(unknown) => Err(FormatError::Value { field, found: unknown.0.into() }),
        }
    }
}

table! {
    "gpu": Gpu = Gpu {
        index = index,
        uuid = uuid,
        vendor = vendor,
        model = model,
        memory_bytes = memory_bytes,
        mig_profile = mig_profile,
        healthy = healthy,
    }
}

table! {
    "inventory": Inventory = Inventory {
        cores = cores,
        memory_bytes = memory_bytes,
        architecture = architecture,
        gpus = gpus,
        devices = devices,
        labels = labels,
        places = places,
        declared = declared,
        unchecked = unchecked,
        llm_places = llm_places,
    }
}

table! {
    "demand": Demand = Demand {
        cores = cores,
        memory_bytes = memory_bytes,
        gpus = gpus,
        vram_bytes = vram_bytes,
        architecture = architecture,
        devices = devices,
        labels = labels,
        node = node_id,
        place = place,
        python = python,
        nodejs = nodejs,
    }
}

table! {
    "gpu_share": GpuShare = GpuShare {
        index = index,
        vram_bytes = vram_bytes,
    }
}

table! {
    "allocation": Allocation = Allocation {
        cores = cores,
        memory_bytes = memory_bytes,
        gpus = gpus,
        place = place,
    }
}
