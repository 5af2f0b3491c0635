//! Core dumps: programs that hold secrets leave none, because a core has all of their memory.

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The variable that allows core dumps, to find an error.
const VARIABLE: &str = "ATLAS_CORE_DUMPS";

/// A limit of one byte. Unlike 0, it also stops cores that the kernel pipes to a program, such as `systemd-coredump`.
const NOTHING: u64 = 1;

/// Core dumps are neither allowed nor forbidden.
#[derive(Debug, thiserror::Error)]
pub enum CoreDumpError {
    /// The variable has another value.
    #[error("the variable {VARIABLE} is {0:?}; set it to \"on\" to allow core dumps, or to \"off\"")]
    Unknown(String),
    /// The system refuses the limit.
    #[error("could not switch core dumps off; set {VARIABLE}=on to run nevertheless")]
    Limit(#[source] Errno),
}

/// Switches core dumps of this process and of those that it starts off, unless `ATLAS_CORE_DUMPS` is `on`. Call this first in `main`.
///
/// Only the soft limit changes, and not beyond the hard limit: with a hard limit of 0 no core becomes a file, but the kernel still pipes cores to
/// a program, so set that limit to 1 instead (`LimitCORE=1` in a unit of systemd).
///
/// That the process cannot be dumped at all (`PR_SET_DUMPABLE`) would give its files in `/proc` to root, without
/// which it can make no user namespaces for agents.
pub fn no_core_dumps() -> Result<(), CoreDumpError> {
    let wanted = std::env::var_os(VARIABLE).unwrap_or_default();
    match wanted.to_str() {
        Some("" | "off") => {}
        Some("on") => return Ok(()),
        _ => return Err(CoreDumpError::Unknown(wanted.to_string_lossy().chars().take(100).collect())),
    }
    let (_, hard) = getrlimit(Resource::RLIMIT_CORE).map_err(CoreDumpError::Limit)?;
    setrlimit(Resource::RLIMIT_CORE, NOTHING.min(hard), hard).map_err(CoreDumpError::Limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_less_than_any_core_has() {
        let (_, hard) = getrlimit(Resource::RLIMIT_CORE).expect("a limit");
        no_core_dumps().expect("switched off");
        assert_eq!(getrlimit(Resource::RLIMIT_CORE), Ok((NOTHING.min(hard), hard)));
    }
}
