//! Finds the programs under test: in the folder that `cargo xtask test` sets, next to this program, or built on demand.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The path of one of Atlas's programs.
pub fn program(name: &str) -> PathBuf {
    let path = bin_dir().join(name);
    assert!(path.is_file(), "{} is missing: cargo build --workspace --bins", path.display());
    path
}

/// The folder with programs of an older release, if `ATLAS_TEST_OLDER_BIN_DIR` names one.
#[cfg(test)]
pub(crate) fn older_programs() -> Option<PathBuf> {
    std::env::var_os("ATLAS_TEST_OLDER_BIN_DIR").map(PathBuf::from)
}

fn bin_dir() -> PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| match std::env::var_os("ATLAS_TEST_BIN_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => beside().unwrap_or_else(built_now),
    })
    .clone()
}

/// The folder of this program, if the other programs are there too.
fn beside() -> Option<PathBuf> {
    let here = std::env::current_exe().ok()?.parent()?.to_owned();
    here.join("atlas-controller").is_file().then_some(here)
}

/// Builds the programs. A test binary is in `target/debug/deps` and the programs one folder up, but they may be older
/// than the test, so cargo is run.
fn built_now() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = [
        "build",
        "--workspace",
        "--bins",
        "--quiet",
        "--manifest-path",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"),
    ];
    let status = Command::new(cargo).args(arguments).status().expect("cargo starts");
    assert!(status.success(), "cargo build --workspace --bins failed");
    let test = std::env::current_exe().expect("the test has a path");
    test.ancestors().nth(2).expect("target/debug").to_owned()
}
