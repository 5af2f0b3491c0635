//! The health of GPUs while a node runs.

use atlas_types::{Gpu, Inventory};

use crate::{GpuFacts, GpuProbe, ProbeError};

/// The advertised inventory with the health that the driver reports now. None if nothing changed.
///
/// A device that the driver no longer reports is broken. Devices that appear, and other amounts, count from the next start of the worker,
/// because running slots were measured against those that it started with. Declared hardware has no driver to ask.
pub fn changed(advertised: &Inventory, probe: &dyn GpuProbe) -> Result<Option<Inventory>, ProbeError> {
    if advertised.declared || advertised.gpus.is_empty() {
        return Ok(None);
    }
    let found: Vec<Gpu> = probe.gpus()?.into_iter().flat_map(GpuFacts::into_devices).collect();
    let mut now = advertised.clone();
    for gpu in &mut now.gpus {
        gpu.healthy = found.iter().any(|found| found.healthy && is_same(gpu, found));
    }
    Ok((now != *advertised).then_some(now))
}

/// A device keeps its unique id; without one it has its index.
fn is_same(known: &Gpu, found: &Gpu) -> bool {
    let has_id = !known.uuid.is_empty() && !found.uuid.is_empty();
    if has_id { known.uuid == found.uuid } else { known.index == found.index }
}
