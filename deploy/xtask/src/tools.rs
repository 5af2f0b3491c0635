//! Programs that some tests need beyond Rust: installed where possible, otherwise reported as missing.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::command::target_dir;

/// Installs the Debian package of `program` if the program is missing. If that fails, some tests are skipped; this is
/// reported here, because the test runner hides the output of passing tests.
pub(crate) fn want(program: &str, package: &str) {
    if is_there(program) {
        return;
    }
    eprintln!("xtask: \"{program}\" is not installed: trying the package {package}");
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--no-install-recommends", package]).env("DEBIAN_FRONTEND", "noninteractive");
    if !succeeds(&mut install) || !is_there(program) {
        eprintln!("xtask: \"{program}\" could not be installed: what needs it is skipped");
    }
}

/// Installs a Python program in its own virtual environment in the target folder, unless it is installed already;
/// returns its path. If the installation fails, returns none and reports that the tests that need the program are
/// skipped.
pub(crate) fn want_python(name: &str, version: &str) -> Option<PathBuf> {
    let environment = target_dir().join("tools").join(format!("{name}-{version}"));
    let program = environment.join("bin").join(name);
    if program.is_file() {
        return Some(program);
    }
    eprintln!("xtask: installing {name} {version} for the tests");
    let made = succeeds(Command::new("python3").args(["-m", "venv"]).arg(&environment));
    let mut install = Command::new(environment.join("bin").join("pip"));
    install.args(["install", "--disable-pip-version-check", &format!("{name}=={version}")]);
    if made && succeeds(&mut install) && program.is_file() {
        return Some(program);
    }
    // The next run would take an incomplete environment for a complete one.
    let _ = std::fs::remove_dir_all(&environment);
    eprintln!("xtask: {name} could not be installed: what needs it is skipped");
    None
}

/// Runs `command` without output; returns whether it succeeded.
fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn is_there(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    // The folders of administration programs are not in every user's PATH.
    let places = std::env::split_paths(&paths).chain(["/usr/sbin".into(), "/sbin".into()]);
    places.into_iter().any(|place| place.join(program).is_file())
}
