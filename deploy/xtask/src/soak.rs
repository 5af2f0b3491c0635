//! `cargo xtask soak`: the simulation over fresh seeds until a time is up.

use anyhow::Result;

use crate::command::{cargo, run};

/// How long.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Minutes after which no new seed begins.
    #[arg(long, default_value_t = 10)]
    minutes: u32,
    /// First seed; drawn from the clock when absent, and printed.
    #[arg(long)]
    seed: Option<u64>,
}

pub(crate) fn run_all(options: &Options) -> Result<()> {
    let minutes = options.minutes.to_string();
    let mut soak = cargo(&["run", "--release", "--locked", "--package", "atlas-sim", "--", "--minutes", &minutes]);
    if let Some(seed) = options.seed {
        soak.args(["--seed", &seed.to_string()]);
    }
    run(&mut soak)
}
