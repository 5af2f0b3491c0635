//! `cargo xtask soak`: real programs under a mixed load, watched for growth; or the simulation over fresh seeds.

use std::process::Command;

use anyhow::Result;

use crate::command::{cargo, root, run, target_dir};

/// How long, and what.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Minutes after which nothing new begins.
    #[arg(long, default_value_t = 30)]
    minutes: u32,
    /// First seed; drawn from the clock when absent, and printed.
    #[arg(long)]
    seed: Option<u64>,
    /// Instead: the seeded simulation, over one seed after the other.
    #[arg(long)]
    simulation: bool,
}

pub(crate) fn run_all(options: &Options) -> Result<()> {
    let minutes = options.minutes.to_string();
    let mut soak = if options.simulation {
        cargo(&["run", "--release", "--locked", "--package", "atlas-sim", "--", "--minutes", &minutes])
    } else {
        run(&mut cargo(&["build", "--workspace", "--bins", "--locked"]))?;
        let programs = target_dir().join("debug");
        let mut soak = Command::new(programs.join("atlas-soak"));
        soak.current_dir(root()).env("ATLAS_TEST_BIN_DIR", &programs).args(["--minutes", &minutes]);
        soak
    };
    if let Some(seed) = options.seed {
        soak.args(["--seed", &seed.to_string()]);
    }
    run(&mut soak)
}
