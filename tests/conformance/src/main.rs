//! `atlas-conformance FILE.jsonl …`: one line per row, then the count.
#![expect(clippy::print_stdout, reason = "the verdicts are the result")]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use atlas_conformance::{Bench, Row, run};
use clap::Parser;

/// Runs conformance rows against Atlas. Exit status 1 when any failed.
#[derive(Debug, Parser)]
#[command(name = "atlas-conformance", version)]
struct Arguments {
    /// Files with one row per line.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Prints JSON lines.
    #[arg(long)]
    json: bool,
    /// The folder with the programs of the mock agents.
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/mocks"))]
    mocks: PathBuf,
    /// Number of rows that run in parallel.
    #[arg(long, value_name = "N", default_value_t = 2)]
    at_once: usize,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let mut rows = Vec::new();
    for file in &arguments.files {
        let text = std::fs::read_to_string(file).with_context(|| format!("could not read \"{}\"", file.display()))?;
        rows.extend(Row::read_all(&text).with_context(|| format!("\"{}\" is not a file of rows", file.display()))?);
    }
    let bench = Bench::new(arguments.mocks);
    let tally = run(&bench, &rows, arguments.at_once, &|row, verdict| {
        println!("{}", if arguments.json { verdict.json(&row.id) } else { verdict.line(&row.id) });
    });
    println!("{}", if arguments.json { tally.json() } else { tally.to_string() });
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
