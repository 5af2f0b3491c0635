//! `cargo xtask bench`: the figures of docs/internals/performance.md, each measured together with the limit it is compared with.
//!
//! Client, controller and worker share this machine and, except for `start` and `memory`, this process.

#![expect(clippy::print_stdout, reason = "a command-line program")]
#![expect(clippy::print_stderr, reason = "a command-line program")]

mod agents;
mod cluster;
mod commit;
mod compose;
mod decision;
mod durable;
mod etcd;
mod events;
mod failover;
mod figures;
mod graphs;
mod history;
mod http;
mod jobs;
mod limits;
mod llm;
mod log;
mod mcp;
mod model;
mod overheads;
mod placement;
mod process;
mod queue;
mod record;
mod recovery;
mod retrieval;
mod sandbox;
mod scale;
mod tasks;
mod waiting;

use anyhow::{Result, bail};
use atlas_env::Env;
use clap::Parser;

use crate::figures::Row;
use crate::record::Stolen;

// The allocator of the programs.
use atlas_heap as _;

/// Every benchmark with its name, in the order of execution. The limits come first, because other benchmarks are
/// compared with them.
const BENCHMARKS: [(&str, Benchmark); 26] = [
    ("limits", limits::run),
    ("log", log::run),
    ("commit", commit::run),
    ("jobs", jobs::run),
    ("queue", queue::run),
    ("tasks", tasks::run),
    ("placement", placement::run),
    ("scale", scale::run),
    ("compose", compose::run),
    ("mcp", mcp::run),
    ("llm", llm::run),
    ("agents", agents::run),
    ("graphs", graphs::run),
    ("durable", durable::run),
    ("sandbox", sandbox::run),
    ("decision", decision::run),
    ("retrieval", retrieval::run),
    ("start", process::start),
    ("memory", process::memory),
    ("recovery", recovery::run),
    ("waiting", waiting::run),
    ("history", history::run),
    ("events", events::run),
    ("overheads", overheads::run),
    ("cluster", etcd::run),
    ("failover", failover::run),
];

/// The percentage of CPU time that the host may take before the figures become doubtful.
const STOLEN_MAX: f64 = 3.0;

/// A benchmark: gets the environment and the rows so far, and returns its own rows.
type Benchmark = fn(&Env, &[Row]) -> Result<Vec<Row>>;

/// Measures Atlas on this machine.
#[derive(Parser)]
struct Arguments {
    /// The benchmarks to run; all if none is given. `list` prints their names.
    names: Vec<String>,
    /// Prints one JSON object per line instead of a table.
    #[arg(long)]
    json: bool,
    /// Writes the figures into docs/internals/performance.md.
    #[arg(long)]
    record: bool,
}

fn main() -> Result<()> {
    // The worker starts this program again as the supervisor of its agents' processes, and as an agent.
    atlas_dev::run_if_asked();
    if jobs::answer_if_asked() {
        return Ok(());
    }
    let arguments = Arguments::parse();
    if arguments.names.iter().any(|name| name == "list") {
        BENCHMARKS.iter().for_each(|(name, _)| println!("{name}"));
        return Ok(());
    }
    if let Some(unknown) = arguments.names.iter().find(|name| BENCHMARKS.iter().all(|(known, _)| known != name)) {
        bail!("there is no benchmark \"{unknown}\"; `cargo xtask bench list` names them");
    }
    if cfg!(debug_assertions) {
        bail!("figures of a debug build mean nothing: cargo xtask bench");
    }
    let env = Env::system();
    let mut rows = Vec::new();
    let stolen = Stolen::start();
    let measured = measure(&env, &arguments, &mut rows);
    if !arguments.json {
        print!("{}", figures::table(&rows));
    }
    if let Some(percent) = stolen.percent()
        && percent >= STOLEN_MAX
    {
        eprintln!(
            "the host kept {percent:.0} % of the processor time that was asked for: measure again when it is calm"
        );
    }
    // Rows that were measured before a failure are shown, but only a complete run is recorded.
    measured?;
    if arguments.record {
        record::write(&rows, &stolen)?;
    }
    Ok(())
}

fn measure(env: &Env, arguments: &Arguments, rows: &mut Vec<Row>) -> Result<()> {
    for (name, benchmark) in BENCHMARKS {
        if !arguments.names.is_empty() && !arguments.names.iter().any(|wanted| wanted == name) {
            continue;
        }
        eprintln!("measuring {name}");
        for row in benchmark(env, rows)? {
            if arguments.json {
                println!("{}", row.json());
            }
            rows.push(row);
        }
    }
    Ok(())
}
