//! `cargo xtask bench`: builds in release and runs `atlas-bench`.

use anyhow::Result;

use crate::command::{cargo, run};

/// What to measure and how to print it.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Benchmarks by name; all when none is named. `cargo xtask bench list` names them.
    names: Vec<String>,
    /// One JSON object a line instead of a table.
    #[arg(long)]
    json: bool,
    /// Writes the figures into docs/internals/performance.md.
    #[arg(long)]
    record: bool,
}

pub(crate) fn run_all(options: &Options) -> Result<()> {
    // The programs too: some benchmarks start them as processes.
    run(&mut cargo(&["build", "--release", "--workspace", "--bins", "--locked"]))?;
    let mut bench = cargo(&["run", "--release", "--quiet", "--locked", "--package", "atlas-bench", "--"]);
    bench.args(&options.names);
    if options.json {
        bench.arg("--json");
    }
    if options.record {
        bench.arg("--record");
    }
    run(&mut bench)
}
