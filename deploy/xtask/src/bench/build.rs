//! `cargo xtask bench build`: how long the first command of the README takes to build, crate by crate.
//!
//! It builds into a folder of its own that is empty at the start. This program stands in for `rustc` there (`RUSTC_WRAPPER`), starts the
//! compiler, and writes down what it used: seconds of processors do not depend on what else runs, as those of a clock do.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::command::{cargo, run, target_dir};

/// Where the stand-in for `rustc` writes; set only below `bench build`.
const LOG: &str = "ATLAS_XTASK_RUSTC_LOG";

/// What the first build may take on two idle cores.
const WALL_MAX: Duration = Duration::from_secs(7 * 60);
const CPU_MAX: Duration = Duration::from_secs(14 * 60);

/// How many crates are listed.
const SHOWN: usize = 25;

/// Builds from nothing and prints what it cost.
#[expect(clippy::disallowed_methods, reason = "it measures a build of this machine, which no test simulates")]
pub(super) fn measure() -> Result<()> {
    let target = target_dir().join("first-build");
    if target.exists() {
        fs::remove_dir_all(&target).with_context(|| format!("could not empty {}", target.display()))?;
    }
    fs::create_dir_all(&target).with_context(|| format!("could not make {}", target.display()))?;
    let log = target.join("rustc.log");
    let mut build = cargo(&["build", "--release", "--bin", "atlasctl", "--locked"]);
    build.env("CARGO_TARGET_DIR", &target).env("RUSTC_WRAPPER", std::env::current_exe()?).env(LOG, &log);
    let (began, before) = (Instant::now(), used()?);
    run(&mut build)?;
    let (wall, cpu) = (began.elapsed(), used()?.saturating_sub(before));
    let compiled = totals(&fs::read_to_string(&log).context("no compiler was started")?);
    println!("\nseconds of processors, by crate:");
    for (name, seconds) in compiled.iter().take(SHOWN) {
        println!("{seconds:8.1}  {name}");
    }
    println!("\n{}", verdict("processors", cpu, CPU_MAX));
    println!("{}", verdict("clock", wall, WALL_MAX));
    fs::remove_dir_all(&target).with_context(|| format!("could not remove {}", target.display()))
}

/// Runs the compiler if this process stands in for it; `None` otherwise. The arguments are the compiler and its own.
pub(crate) fn stand_in() -> Option<ExitCode> {
    let log = std::env::var_os(LOG)?;
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (compiler, rest) = arguments.split_first()?;
    let status = Command::new(compiler).args(rest).status();
    let name = rest.iter().skip_while(|argument| *argument != "--crate-name").nth(1);
    if let (Some(name), Ok(used)) = (name, used()) {
        // A line that is missing makes the table shorter; the build goes on.
        let _ = note(Path::new(&log), &name.to_string_lossy(), used);
    }
    let code = status.ok().and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok());
    Some(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

fn note(log: &Path, name: &str, used: Duration) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(log)?;
    file.write_all(format!("{name} {}\n", used.as_secs_f64()).as_bytes())
}

/// The processor time of all children that have ended.
fn used() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("the system does not tell what children used")?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(micros.try_into().unwrap_or(0)))
}

/// The seconds of each crate, most first. One name may be compiled several times: a library, a program and a build script.
fn totals(log: &str) -> Vec<(String, f64)> {
    let mut crates: BTreeMap<&str, f64> = BTreeMap::new();
    for line in log.lines() {
        if let Some((name, seconds)) = line.split_once(' ')
            && let Ok(seconds) = seconds.parse::<f64>()
        {
            *crates.entry(name).or_default() += seconds;
        }
    }
    let mut crates: Vec<(String, f64)> = crates.into_iter().map(|(name, seconds)| (name.to_owned(), seconds)).collect();
    crates.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    crates
}

fn verdict(what: &str, took: Duration, most: Duration) -> String {
    let minutes = |time: Duration| format!("{}:{:02} min", time.as_secs() / 60, time.as_secs() % 60);
    let word = if took <= most { "within" } else { "OVER" };
    format!("{what}: {}, {word} the budget of {}", minutes(took), minutes(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_compiled_twice_counts_together() {
        let log = "a 1.5\nb 2\nbuild_script_build 0.1\na 1\nbroken\nc x\n";
        let expected = [("a", 2.5), ("b", 2.0), ("build_script_build", 0.1)];
        assert_eq!(totals(log), expected.map(|(name, seconds)| (name.to_owned(), seconds)));
    }

    #[test]
    fn a_verdict_names_the_budget() {
        let most = Duration::from_secs(420);
        assert_eq!(verdict("clock", Duration::from_secs(61), most), "clock: 1:01 min, within the budget of 7:00 min");
        assert_eq!(verdict("clock", Duration::from_secs(500), most), "clock: 8:20 min, OVER the budget of 7:00 min");
    }
}
