//! Folders for what agents must not change or see: outside of temporary folders and of those of the system, wherever this clone is.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Folders of which a confined agent has its own, or which every agent reads.
const OTHER: [&str; 12] =
    ["/tmp", "/var/tmp", "/dev", "/run", "/proc", "/sys", "/opt", "/usr", "/etc", "/nix", "/gnu", "/bin"];

/// A folder that is none of them. None, with a message, if this user may write to no such place.
pub(crate) fn folder() -> Option<TempDir> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let build = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let places = [Some(build), home, Some("/srv".into()), Some("/var/lib".into())].into_iter().flatten();
    let found = places
        .filter(|place| is_fit(place))
        .find_map(|place| tempfile::Builder::new().prefix(".atlas-test-").tempdir_in(place).ok());
    if found.is_none() {
        atlas_notice::skip("this user may write to no folder that agents do not have themselves");
    }
    found
}

/// Whether a place is none of [`OTHER`], and within reach of the other users that root starts programs of.
fn is_fit(place: &Path) -> bool {
    let Ok(place) = place.canonicalize() else { return false };
    let is_open = |folder: &Path| folder.metadata().is_ok_and(|folder| folder.permissions().mode() & 1 != 0);
    let in_reach = !nix::unistd::geteuid().is_root() || place.ancestors().all(is_open);
    in_reach && !OTHER.iter().any(|other| place.starts_with(other))
}
