//! The programs that rows run against, built first in the profile of this program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The paths of the programs.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub(crate) controller: PathBuf,
    pub(crate) worker: PathBuf,
    pub(crate) atlas: PathBuf,
    pub(crate) atlasctl: PathBuf,
}

/// Builds the programs with cargo, or uses those in the folder `ATLAS_TEST_BIN_DIR`.
pub(crate) fn build() -> Result<Programs, String> {
    let folder = match std::env::var_os("ATLAS_TEST_BIN_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => built()?,
    };
    let path = |name: &str| {
        let path = folder.join(name);
        if path.is_file() { Ok(path) } else { Err(format!("the program \"{}\" is missing", path.display())) }
    };
    Ok(Programs {
        controller: path("atlas-controller")?,
        worker: path("atlas-worker")?,
        atlas: path("atlas")?,
        atlasctl: path("atlasctl")?,
    })
}

fn built() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("could not find this program: {error}"))?;
    let folder = profile_folder(&own).ok_or_else(|| format!("\"{}\" was not built by cargo", own.display()))?;
    let profile = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.args([
        "build",
        "--quiet",
        "--package",
        "atlas-controller",
        "--package",
        "atlas-worker",
        "--package",
        "atlas-compat",
        "--package",
        "atlas-cli",
        "--bins",
    ]);
    command.args(["--profile", if profile == "debug" { "dev" } else { profile }]);
    command.args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"), "--target-dir"]);
    command.arg(folder.parent().unwrap_or(folder)).stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.status().map_err(|error| format!("could not start cargo: {error}"))?;
    if status.success() { Ok(folder.to_owned()) } else { Err("the programs could not be built".to_owned()) }
}

/// The folder of the profile. A program is in this folder, a test binary in its subfolder `deps`.
fn profile_folder(own: &Path) -> Option<&Path> {
    let folder = own.parent()?;
    if folder.file_name()? == "deps" { folder.parent() } else { Some(folder) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_tests_find_their_profile() {
        for own in ["/t/debug/atlas-conformance", "/t/debug/deps/rows-0123"] {
            assert_eq!(profile_folder(Path::new(own)), Some(Path::new("/t/debug")));
        }
    }
}
