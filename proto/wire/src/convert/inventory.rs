//! Hardware of a node.

use std::collections::BTreeMap;

use atlas_types::{Architecture, Gpu, INLINE_BYTES_MAX, Inventory};

use super::{ConvertError, bounded, word};
use crate::limits::INVENTORY_ITEMS_MAX;
use crate::proto::worker::v1 as pb;

impl From<Inventory> for pb::Inventory {
    fn from(inventory: Inventory) -> Self {
        let architecture = match inventory.architecture {
            None => pb::Architecture::Unspecified,
            Some(Architecture::X86_64) => pb::Architecture::X8664,
            Some(Architecture::Arm64) => pb::Architecture::Arm64,
        };
        Self {
            cores: inventory.cores,
            memory_bytes: inventory.memory_bytes,
            architecture: architecture.into(),
            gpus: inventory.gpus.into_iter().map(pb::Gpu::from).collect(),
            devices: inventory.devices,
            labels: inventory.labels.into_iter().map(|(key, value)| pb::Label { key, value }).collect(),
            places: inventory.places,
            declared: inventory.declared,
            unchecked: inventory.unchecked,
            llm_places: inventory.llm_places,
        }
    }
}

impl TryFrom<pb::Inventory> for Inventory {
    type Error = ConvertError;

    fn try_from(inventory: pb::Inventory) -> Result<Self, ConvertError> {
        bounded("inventory.gpus", inventory.gpus.len(), INVENTORY_ITEMS_MAX)?;
        bounded("inventory.devices", inventory.devices.len(), INVENTORY_ITEMS_MAX)?;
        let architecture = match pb::Architecture::try_from(inventory.architecture) {
            Ok(pb::Architecture::Unspecified) => None,
            Ok(pb::Architecture::X8664) => Some(Architecture::X86_64),
            Ok(pb::Architecture::Arm64) => Some(Architecture::Arm64),
            Err(unknown) => {
                return Err(ConvertError::Value { field: "inventory.architecture", found: unknown.0.into() });
            }
        };
        let device = |text| word("inventory.devices", text);
        let inventory = Self {
            cores: inventory.cores,
            memory_bytes: inventory.memory_bytes,
            architecture,
            gpus: inventory.gpus.into_iter().map(Gpu::try_from).collect::<Result<_, _>>()?,
            devices: inventory.devices.into_iter().map(device).collect::<Result<_, _>>()?,
            labels: labels_in("inventory.labels", inventory.labels)?,
            places: inventory.places,
            declared: inventory.declared,
            unchecked: inventory.unchecked,
            llm_places: inventory.llm_places,
        };
        bounded("inventory", usize::try_from(inventory.text_bytes()).unwrap_or(usize::MAX), INLINE_BYTES_MAX)?;
        match inventory.gpu_listed_twice() {
            Some(found) => Err(ConvertError::Twice { field: "inventory.gpus", found }),
            None => Ok(inventory),
        }
    }
}

impl From<Gpu> for pb::Gpu {
    fn from(gpu: Gpu) -> Self {
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

impl TryFrom<pb::Gpu> for Gpu {
    type Error = ConvertError;

    fn try_from(gpu: pb::Gpu) -> Result<Self, ConvertError> {
        Ok(Self {
            index: gpu.index,
            uuid: word("gpu.uuid", gpu.uuid)?,
            vendor: word("gpu.vendor", gpu.vendor)?,
            model: word("gpu.model", gpu.model)?,
            memory_bytes: gpu.memory_bytes,
            mig_profile: gpu.mig_profile.map(|text| word("gpu.mig_profile", text)).transpose()?,
            healthy: gpu.healthy,
        })
    }
}

fn labels_in(field: &'static str, labels: Vec<pb::Label>) -> Result<BTreeMap<String, String>, ConvertError> {
    bounded(field, labels.len(), INVENTORY_ITEMS_MAX)?;
    labels.into_iter().map(|label| Ok((word(field, label.key)?, word(field, label.value)?))).collect()
}
