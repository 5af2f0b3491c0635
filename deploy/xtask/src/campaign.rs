//! `cargo xtask campaign`: the simulation with real openraft over a range of seeds, and its row for the ledger; or its deliberate bugs.

use anyhow::Result;

use crate::command::{cargo, run};

/// Which seeds.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The seeds, as FROM..TO. From 1000 on runs are long.
    #[arg(long, default_value = "1000..1200")]
    seeds: String,
    /// Runs at a time.
    #[arg(long, default_value_t = 2)]
    threads: u32,
    /// Instead: the mistakes made on purpose, and which seed catches each. Fails unless all are caught.
    #[arg(long)]
    bugs: bool,
}

pub(crate) fn run_all(options: &Options) -> Result<()> {
    let threads = options.threads.to_string();
    let program = ["run", "--release", "--quiet", "--locked", "--package", "atlas-turmoil", "--"];
    let mut campaign = cargo(&program);
    campaign.args([if options.bugs { "bugs" } else { options.seeds.as_str() }, &threads]);
    run(&mut campaign)
}
