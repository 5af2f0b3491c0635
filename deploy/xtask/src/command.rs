//! Starts other programs in the workspace root, and prints each command line before it runs.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The root of the workspace: two folders above this crate.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map_or(here.clone(), PathBuf::from)
}

/// Cargo's target folder.
pub(crate) fn target_dir() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    root().join(target)
}

/// `cargo ARGUMENTS` in the workspace root, with the same cargo that started this program.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs `command` with this program's standard streams; an exit code other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = describe(command);
    eprintln!("$ {line}");
    let status = command.status().with_context(|| format!("could not start \"{line}\""))?;
    ensure!(status.success(), "\"{line}\" ended with {status}");
    Ok(())
}

/// What `command` prints; an exit code other than 0 is an error.
pub(crate) fn read(command: &mut Command) -> Result<Vec<u8>> {
    let line = describe(command);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("could not start \"{line}\""))?;
    ensure!(output.status.success(), "\"{line}\" ended with {}", output.status);
    Ok(output.stdout)
}

/// Whether `cargo NAME` exists on this machine.
pub(crate) fn has_cargo(name: &str) -> bool {
    let mut command = cargo(&[name, "--version"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The checked-out commit, with a mark if tracked files have changes.
pub(crate) fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(root()).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    };
    let changed = !git(&["status", "--porcelain", "--untracked-files=no"]).is_empty();
    format!("{}{}", git(&["rev-parse", "--short", "HEAD"]), if changed { "+" } else { "" })
}

fn describe(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(program).chain(arguments).collect::<Vec<_>>().join(" ")
}
