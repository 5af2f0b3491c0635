//! Capabilities and rlimits.

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities};

/// Sets limits that the whole tree inherits. `processes_max` is for a tree in its own user namespace: elsewhere all processes
/// of the user are counted. Root has no such limit.
pub(crate) fn limit(processes_max: Option<u64>) -> nix::Result<()> {
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    if let Some(most) = processes_max {
        let (soft, hard) = getrlimit(Resource::RLIMIT_NPROC)?;
        setrlimit(Resource::RLIMIT_NPROC, soft.min(most), hard.min(most))?;
    }
    Ok(())
}

/// Gives up all capabilities. `no_new_privs`, which must be set, keeps programs of root from getting them back.
pub(crate) fn give_up() -> nix::Result<()> {
    for capability in CapabilitySet::all().iter() {
        // Without the right to do so there is nothing to give up, and an older kernel does not know all of them.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .map_err(|error| Errno::from_raw(error.raw_os_error()))
}
