//! Programs that some tests need beyond Rust: installed where that is possible, else said to be missing.

use std::process::{Command, Stdio};

/// Sees that `program` is there; installs its Debian package if it is not. Without it some tests are skipped, which is said here
/// because a runner does not show what a passing test prints.
pub(crate) fn want(program: &str, package: &str) {
    if is_there(program) {
        return;
    }
    eprintln!("xtask: \"{program}\" is not installed: trying the package {package}");
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--no-install-recommends", package]).env("DEBIAN_FRONTEND", "noninteractive");
    install.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let installed = install.status().is_ok_and(|status| status.success()) && is_there(program);
    if !installed {
        eprintln!("xtask: \"{program}\" could not be installed: what needs it is skipped");
    }
}

fn is_there(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    // The administrator's programs, which not every user has on the path.
    let places = std::env::split_paths(&paths).chain(["/usr/sbin".into(), "/sbin".into()]);
    places.into_iter().any(|place| place.join(program).is_file())
}
