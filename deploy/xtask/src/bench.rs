//! `cargo xtask bench`: builds in release and runs `atlas-bench`.

mod build;

use std::process::Command;

use anyhow::Result;

pub(crate) use build::stand_in;

use crate::command::{cargo, root, run, target_dir};

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Benchmarks by name; all when none is named. `cargo xtask bench list` names them. `build` alone measures a build from nothing.
    names: Vec<String>,
    /// One JSON object a line instead of a table.
    #[arg(long)]
    json: bool,
    /// Writes the figures into docs/internals/performance.md.
    #[arg(long)]
    record: bool,
}

pub(crate) fn run_all(options: &Options) -> Result<()> {
    if options.names == ["build"] {
        return build::measure();
    }
    // All programs are built, because some benchmarks start them as processes. The benchmark is then started directly,
    // because `cargo run` of one package would select other features and rebuild most dependencies.
    run(&mut cargo(&["build", "--release", "--workspace", "--bins", "--locked"]))?;
    let mut bench = Command::new(target_dir().join("release").join("atlas-bench"));
    bench.current_dir(root()).args(&options.names);
    if options.json {
        bench.arg("--json");
    }
    if options.record {
        bench.arg("--record");
    }
    run(&mut bench)
}
