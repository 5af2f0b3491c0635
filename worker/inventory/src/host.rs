//! Cores, memory and architecture.

use std::path::PathBuf;
use std::thread;

use sysinfo::{MemoryRefreshKind, System};

use crate::{ProbeError, cgroup};

/// The data that an operating system reports about its machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    /// Cores that this process may use.
    pub cores: u32,
    /// Memory that this process may use.
    pub memory_bytes: u64,
    /// The name that the operating system uses for the processor family.
    pub architecture: String,
}

/// Queries an operating system.
pub trait HostProbe {
    /// The resources of the machine, within the limits of this process.
    fn facts(&self) -> Result<HostFacts, ProbeError>;
}

/// This machine's operating system, with the limits of the control group that this process is in.
#[derive(Debug, Clone)]
pub struct SystemHost {
    cgroup_root: PathBuf,
    own_cgroup: PathBuf,
}

impl Default for SystemHost {
    fn default() -> Self {
        Self { cgroup_root: PathBuf::from("/sys/fs/cgroup"), own_cgroup: PathBuf::from("/proc/self/cgroup") }
    }
}

impl HostProbe for SystemHost {
    fn facts(&self) -> Result<HostFacts, ProbeError> {
        let mut system = System::new().map_err(|error| ProbeError::Host(error.into()))?;
        system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
        // The standard library applies affinity masks. Quotas are read here, because containers set them in files that
        // it does not read.
        let cores = thread::available_parallelism().map_err(|error| ProbeError::Host(error.into()))?;
        let cores = u32::try_from(cores.get()).unwrap_or(u32::MAX);
        // Without control groups the file does not exist, and there is no limit.
        let own = std::fs::read_to_string(&self.own_cgroup).unwrap_or_default();
        let limits = cgroup::limits(&self.cgroup_root, &own);
        Ok(HostFacts {
            cores: limits.cores.map_or(cores, |limit| limit.min(cores)),
            memory_bytes: limits.memory_bytes.map_or(system.total_memory(), |limit| limit.min(system.total_memory())),
            architecture: System::cpu_arch(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_core_and_memory() {
        let facts = SystemHost::default().facts().expect("the system tells");
        assert!(facts.cores > 0 && facts.memory_bytes > 1 << 20, "{facts:?}");
    }
}
