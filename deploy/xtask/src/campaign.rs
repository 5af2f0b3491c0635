//! `cargo xtask campaign`: runs the simulation with real openraft over a range of seeds and prints rows for the ledger,
//! or runs its deliberate bugs.

use anyhow::Result;

use crate::command::{cargo, commit, root, run};

/// Options of `cargo xtask campaign`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The seeds, as FROM..TO; runs with seeds from 1000 are long.
    #[arg(long, default_value = "1000..1200")]
    seeds: String,
    /// Number of parallel runs.
    #[arg(long, default_value_t = 2)]
    threads: u64,
    /// Number of seeds per slice; each slice has its own row, so that a stopped campaign keeps its results.
    #[arg(long, default_value_t = 250)]
    slice: u64,
    /// Appends the rows to docs/internals/ledger.md.
    #[arg(long)]
    record: bool,
    /// Run the deliberate bugs instead, and print the seed that catches each; fails unless all are caught.
    #[arg(long)]
    bugs: bool,
}

pub(crate) fn run_all(options: &Options) -> Result<()> {
    let program = ["run", "--release", "--quiet", "--locked", "--package", "atlas-turmoil", "--"];
    let mut campaign = cargo(&program);
    campaign.arg(if options.bugs { "bugs" } else { options.seeds.as_str() });
    campaign.args(["--threads", &options.threads.to_string(), "--slice", &options.slice.to_string()]);
    if options.record {
        campaign.arg("--record").arg(root().join("docs/internals/ledger.md")).args(["--commit", &commit()]);
    }
    run(&mut campaign)
}
