//! `cargo xtask check`: all checks that are not tests of behaviour. It never edits files, runs every step and reports
//! all failures.

use std::process::Command;

use anyhow::{Result, bail};

use crate::command::{self, cargo, has_cargo};
use crate::subjects;

pub(crate) fn run_all() -> Result<()> {
    let mut docs = cargo(&["doc", "--workspace", "--no-deps", "--locked", "--quiet"]);
    docs.env("RUSTDOCFLAGS", "-D warnings");
    let mut steps = vec![
        ("format", cargo(&["fmt", "--all", "--check"])),
        ("lints", cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])),
        ("docs", docs),
        ("tidy", cargo(&["test", "--package", "atlas-tidy", "--locked", "--quiet"])),
        ("generated files", cargo(&["test", "--workspace", "--lib", "--locked", "--quiet", "--", "generated_"])),
    ];
    if has_cargo("deny") {
        let deny = cargo(&["deny", "--all-features", "--offline", "check", "bans", "licenses", "sources"]);
        steps.push(("bans and licences", deny));
    } else {
        eprintln!("xtask: cargo-deny is not installed: licences are not checked here; tests/tidy checks the bans");
    }
    run_steps(steps)?;
    println!("check: all passed");
    Ok(())
}

/// Runs each step, even after a failure, so that one run shows all problems.
fn run_steps(steps: Vec<(&str, Command)>) -> Result<()> {
    let mut failed = Vec::new();
    if let Err(error) = subjects::check() {
        eprintln!("xtask: {error:#}");
        failed.push("commit subjects");
    }
    for (name, mut command) in steps {
        if let Err(error) = command::run(&mut command) {
            eprintln!("xtask: {error:#}");
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        bail!(
            "{} did not pass; `cargo xtask fix` mends format, lint suggestions and generated files",
            failed.join(", ")
        );
    }
    Ok(())
}
