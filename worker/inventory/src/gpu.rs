//! GPUs, queried through NVML. A machine without its library has no GPUs.

use std::ffi::OsString;
use std::fmt;

use atlas_types::Gpu;
use nvml_wrapper::enum_wrappers::device::{EccCounter, MemoryError};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use crate::ProbeError;

/// The data that a driver reports about one GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuFacts {
    /// The driver's index.
    pub index: u32,
    /// The vendor's unique id.
    pub uuid: String,
    /// The driver's name for it.
    pub name: String,
    /// Its memory; 0 if the driver does not report it.
    pub memory_bytes: u64,
    /// False if the driver reports the GPU as lost, or memory errors that its error correction could not repair.
    pub healthy: bool,
    /// Its MIG slices, if it is partitioned.
    pub slices: Vec<MigFacts>,
}

/// The data that a driver reports about one MIG slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigFacts {
    /// The vendor's unique id. A process can be confined to the slice only by this id.
    pub uuid: String,
    /// The driver's name for it, which ends in the profile.
    pub name: String,
    /// Its memory.
    pub memory_bytes: u64,
}

/// Queries a driver.
pub trait GpuProbe: fmt::Debug + Send + Sync {
    /// All GPUs; none without a driver.
    fn gpus(&self) -> Result<Vec<GpuFacts>, ProbeError>;
}

impl GpuFacts {
    /// Slices of GPU `i` are numbered from `100 × (i + 1)`, so that they never collide with the numbers of whole GPUs.
    const SLICE_STRIDE: u32 = 100;

    /// The devices of this GPU that jobs can use: the GPU itself, or its slices.
    pub fn into_devices(self) -> Vec<Gpu> {
        let vendor = "nvidia".to_owned();
        if self.slices.is_empty() {
            let (model, memory_bytes) = (self.name, self.memory_bytes);
            let gpu = Gpu {
                index: self.index,
                uuid: self.uuid,
                vendor,
                model,
                memory_bytes,
                mig_profile: None,
                healthy: self.healthy,
            };
            return vec![gpu];
        }
        let slice = |(number, slice): (u32, MigFacts)| Gpu {
            index: (self.index + 1) * Self::SLICE_STRIDE + number,
            uuid: slice.uuid,
            vendor: vendor.clone(),
            model: self.name.clone(),
            memory_bytes: slice.memory_bytes,
            mig_profile: Some(profile(&slice.name)),
            healthy: self.healthy,
        };
        (0..).zip(self.slices).map(slice).collect()
    }
}

/// The profile at the end of a slice's name: `1g.10gb` of `NVIDIA H100 80GB HBM3 MIG 1g.10gb`.
fn profile(name: &str) -> String {
    name.rsplit_once("MIG ").map_or(name, |(_, profile)| profile).trim().to_owned()
}

/// NVIDIA's management library.
#[derive(Debug, Clone, Default)]
pub struct NvmlProbe {
    library: Option<OsString>,
}

impl NvmlProbe {
    /// Uses another library than the system's.
    pub fn with_library(library: impl Into<OsString>) -> Self {
        Self { library: Some(library.into()) }
    }
}

impl GpuProbe for NvmlProbe {
    fn gpus(&self) -> Result<Vec<GpuFacts>, ProbeError> {
        let fault = |error: NvmlError| ProbeError::Gpu(error.into());
        let mut builder = Nvml::builder();
        if let Some(library) = &self.library {
            builder.lib_path(library);
        }
        let nvml = match builder.init() {
            Ok(nvml) => nvml,
            // A missing library, or a library without a driver, means that there is no GPU.
            Err(NvmlError::LibloadingError(_) | NvmlError::DriverNotLoaded | NvmlError::LibraryNotFound) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(fault(error)),
        };
        let count = nvml.device_count().map_err(fault)?;
        (0..count).map(|index| ask(&nvml, index).map_err(fault)).collect()
    }
}

/// A GPU that fell off its bus is reported as broken, not omitted, so that an operator sees it.
fn ask(nvml: &Nvml, index: u32) -> Result<GpuFacts, NvmlError> {
    let lost = || GpuFacts {
        index,
        uuid: String::new(),
        name: "lost".to_owned(),
        memory_bytes: 0,
        healthy: false,
        slices: Vec::new(),
    };
    let device = match nvml.device_by_index(index) {
        Ok(device) => device,
        Err(NvmlError::GpuLost | NvmlError::NotFound) => return Ok(lost()),
        Err(error) => return Err(error),
    };
    match device.name() {
        Ok(name) => Ok(GpuFacts {
            index,
            // Older drivers and virtual machines do not report all of these values. Missing values are accepted.
            uuid: device.uuid().unwrap_or_default(),
            name,
            memory_bytes: device.memory_info().map_or(0, |memory| memory.total),
            healthy: !is_broken(&device),
            slices: slices(&device),
        }),
        Err(NvmlError::GpuLost) => Ok(lost()),
        Err(error) => Err(error),
    }
}

/// Whether the driver counts memory errors since its start that were not repaired, or has pages to retire at the next reset. Both
/// end with a reset of the GPU. GPUs without error correction do not support the calls, and are healthy.
fn is_broken(device: &Device<'_>) -> bool {
    let unrepaired = device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile);
    unrepaired.is_ok_and(|count| count > 0) || device.are_pages_pending_retired().unwrap_or(false)
}

fn slices(device: &Device<'_>) -> Vec<MigFacts> {
    // Most GPUs do not support MIG, and many drivers do not support the call.
    if !device.mig_mode().is_ok_and(|mode| mode.current == 1) {
        return Vec::new();
    }
    let count = device.mig_device_count().unwrap_or(0);
    let slices = (0..count).filter_map(|number| device.mig_device_by_index(number).ok());
    let facts = |slice: Device<'_>| {
        let memory_bytes = slice.memory_info().map_or(0, |memory| memory.total);
        Some(MigFacts { uuid: slice.uuid().ok()?, name: slice.name().ok()?, memory_bytes })
    };
    slices.filter_map(facts).collect()
}
