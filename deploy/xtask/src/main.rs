//! `cargo xtask`: the commands for developers and CI, one file per verb.
//!
//! This program only starts other programs and prints their command lines; the checks themselves are lints, `tests/`
//! and `deny.toml`.

#![expect(clippy::print_stdout, reason = "a command-line program")]
#![expect(clippy::print_stderr, reason = "a command-line program")]

mod bench;
mod bill;
mod campaign;
mod chaos;
mod check;
mod command;
mod fix;
mod image;
mod notices;
mod slow;
mod soak;
mod subjects;
mod test;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Checks, tests and benchmarks of the workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Format, lints, docs, tidiness, bans and licences, generated files; never edits.
    Check,
    /// Applies automatic fixes: format, lint suggestions, generated files.
    Fix,
    /// All tests, then doc tests; installs and starts what they need.
    Test(test::Options),
    /// Release benchmarks; the figures of docs/internals/performance.md.
    Bench(bench::Options),
    /// Builds the images with the machine's container engine, with a bill of materials for each.
    Image(image::Options),
    /// Real programs under a mixed load, for a bounded time; their memory and open files must not grow.
    Soak(soak::Options),
    /// The simulation with real openraft over a range of seeds; prints a row for the ledger.
    Campaign(campaign::Options),
    /// Real processes and real faults, for a bounded time.
    Chaos(chaos::Options),
}

fn main() -> ExitCode {
    if let Some(code) = bench::stand_in() {
        return code;
    }
    let result = match Arguments::parse().verb {
        Verb::Check => check::run_all(),
        Verb::Fix => fix::run_all(),
        Verb::Test(options) => test::run_all(&options),
        Verb::Bench(options) => bench::run_all(&options),
        Verb::Image(options) => image::run_all(&options),
        Verb::Soak(options) => soak::run_all(&options),
        Verb::Campaign(options) => campaign::run_all(&options),
        Verb::Chaos(options) => chaos::run_all(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
