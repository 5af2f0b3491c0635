//! `cargo xtask soak`: real programs under a mixed load for a given time. The last line reports whether memory or open
//! files grew.

#![expect(clippy::print_stdout, reason = "a command-line program")]
#![expect(clippy::print_stderr, reason = "a command-line program")]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use atlas_cluster_tests::soak::{Options, run};
use atlas_env::Env;
use clap::Parser;

/// Maximum number of unexpected results that are printed.
const WRONG_SHOWN: usize = 20;

/// A mixed load on a controller and a worker.
#[derive(Parser)]
#[command(name = "atlas-soak", disable_help_subcommand = true)]
struct Arguments {
    /// Duration of the load.
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// Clients, each with one job at a time.
    #[arg(long, default_value_t = 4)]
    clients: usize,
    /// Seed of the load; defaults to one from the clock, and is printed.
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> ExitCode {
    match soak(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn soak(arguments: &Arguments) -> Result<bool> {
    let env = Env::system();
    let seed = arguments.seed.unwrap_or_else(|| env.clock.wall().0.unsigned_abs());
    println!("{} minutes, {} clients, seed {seed}", arguments.minutes, arguments.clients);
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    env.spawn("signals", async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            told.store(true, Ordering::Relaxed);
        }
    });
    let folder = tempfile::tempdir()?;
    let report = run(&Options {
        lasts: Duration::from_secs_f64(60.0 * arguments.minutes),
        clients: arguments.clients,
        seed,
        folder: folder.path().to_owned(),
        stop,
    })
    .await?;
    for wrong in report.wrong.iter().take(WRONG_SHOWN) {
        println!("wrong: {wrong}");
    }
    println!("{report}");
    Ok(report.is_good())
}
