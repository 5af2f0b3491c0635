//! Landlock: rules for files that hold even where a mount was overlooked, and borders for signals and abstract sockets.

use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use nix::errno::Errno;

use crate::paths::{DEVICES, SYSTEM, TEMPORARY};
use crate::{Files, Sandbox};

/// The newest rights of Landlock that are asked for. An older kernel enforces those that it knows.
const ABI_MAX: ABI = ABI::V6;

/// The version of Landlock that this machine has; 0 for none. It is told only to a process that restricts itself: this one
/// may make no block devices afterwards.
pub(crate) fn version() -> u8 {
    let rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::MakeBlock);
    let status = rules.and_then(Ruleset::create).and_then(RulesetCreated::restrict_self);
    match status.map(|status| status.landlock) {
        Ok(LandlockStatus::Available { effective_abi, kernel_abi }) => {
            kernel_abi.and_then(|abi| u8::try_from(abi).ok()).unwrap_or(effective_abi as u8)
        }
        _ => 0,
    }
}

/// Restricts this process and all that it starts.
pub(crate) fn restrict(sandbox: &Sandbox) -> nix::Result<()> {
    // The errors of the crate say which rule is wrong, not what the system answered.
    rules(sandbox).and_then(|rules| rules.restrict_self().map(drop)).map_err(|_| Errno::EINVAL)
}

fn rules(sandbox: &Sandbox) -> Result<RulesetCreated, RulesetError> {
    let files = sandbox.access.files != Files::Write;
    let mut rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    if files {
        rules = rules.handle_access(AccessFs::from_all(ABI_MAX))?;
    }
    let mut rules = rules.scope(Scope::AbstractUnixSocket | Scope::Signal)?.create()?;
    if !files {
        return Ok(rules);
    }
    let (read, all) = (AccessFs::from_read(ABI_MAX), AccessFs::from_all(ABI_MAX));
    let use_file = AccessFs::from_read(ABI_MAX) | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    match sandbox.access.files {
        Files::Own => {
            for path in SYSTEM {
                rules = allow(rules, Path::new(path), read)?;
            }
        }
        Files::Read | Files::Write => rules = allow(rules, Path::new("/"), read)?,
    }
    for path in &sandbox.visible {
        rules = allow(rules, path, read)?;
    }
    for path in &sandbox.writable {
        rules = allow(rules, path, all)?;
    }
    if sandbox.means.namespaces.is_some() {
        for path in TEMPORARY {
            rules = allow(rules, Path::new(path), all)?;
        }
        // What matters in it is mounted read-only.
        rules = allow(rules, Path::new("/proc"), read | AccessFs::WriteFile)?;
        rules = allow(rules, Path::new("/dev/pts"), use_file)?;
    }
    for path in DEVICES.iter().map(Path::new).chain(sandbox.devices.iter().map(std::path::PathBuf::as_path)) {
        rules = allow(rules, path, use_file)?;
    }
    Ok(rules)
}

/// Allows an access beneath a path. A missing path is left out.
fn allow(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, RulesetError> {
    let Ok(place) = PathFd::new(path) else { return Ok(rules) };
    // Rights of folders are refused for a file.
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(ABI_MAX) };
    rules.add_rule(PathBeneath::new(place, access))
}
