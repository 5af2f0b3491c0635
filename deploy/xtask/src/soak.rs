//! `cargo xtask soak`: runs real programs under a mixed load and checks their growth, or runs the simulation over new
//! seeds.

use std::process::Command;

use anyhow::Result;

use crate::command::{cargo, root, run, target_dir};

/// Options of `cargo xtask soak`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Minutes of load, or after which the simulation starts no new seed.
    #[arg(long, default_value_t = 30)]
    minutes: u32,
    /// First seed; defaults to one from the clock, and is printed.
    #[arg(long)]
    seed: Option<u64>,
    /// Run the seeded simulation instead, one seed after the other.
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
