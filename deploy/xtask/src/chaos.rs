//! `cargo xtask chaos`: real processes and real faults for a given time; the last line has the totals.
//!
//! Everything runs on loopback and in namespaces that disappear with the program. The debug programs are used, because
//! they check more.

use std::process::Command;

use anyhow::Result;

use crate::command::{cargo, commit, root, run, target_dir};
use crate::tools;

/// Options of `cargo xtask chaos`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Minutes after which no new run begins.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// First seed; defaults to one from the clock, and is printed.
    #[arg(long)]
    seed: Option<u64>,
    /// Only this scenario; repeatable; defaults to all that can run on this machine.
    #[arg(long = "scenario")]
    scenarios: Vec<String>,
    /// Seconds with faults in one run.
    #[arg(long, default_value_t = 40)]
    seconds: u64,
    /// Number of clients in a run.
    #[arg(long, default_value_t = 4)]
    clients: usize,
    /// Appends the figures to docs/internals/ledger.md.
    #[arg(long)]
    record: bool,
}

pub(crate) fn run_all(options: &Options) -> Result<()> {
    tools::want("ip", "iproute2");
    run(&mut cargo(&["build", "--workspace", "--bins", "--locked"]))?;
    let programs = target_dir().join("debug");
    let mut chaos = Command::new(programs.join("atlas-chaos"));
    chaos.current_dir(root()).arg("run").env("ATLAS_TEST_BIN_DIR", &programs);
    chaos.args(["--minutes", &options.minutes.to_string(), "--seconds", &options.seconds.to_string()]);
    chaos.args(["--clients", &options.clients.to_string()]).arg("--folder").arg(target_dir().join("chaos"));
    if let Some(seed) = options.seed {
        chaos.args(["--seed", &seed.to_string()]);
    }
    for scenario in &options.scenarios {
        chaos.args(["--scenario", scenario]);
    }
    if options.record {
        chaos.arg("--record").arg(root().join("docs/internals/ledger.md")).args(["--commit", &commit()]);
    }
    run(&mut chaos)
}
