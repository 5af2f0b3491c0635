//! `cargo xtask chaos`: runs scenarios for a given time, on loopback addresses or in separate namespaces only.

#![expect(clippy::print_stdout, reason = "a command-line program")]
#![expect(clippy::print_stderr, reason = "a command-line program")]

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use atlas_cluster_tests::chaos::{Ledger, Needs, Options, RunReport, Scenario, child, missing, run};
use atlas_cluster_tests::durable_chaos;
use atlas_env::Env;
use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

/// After this many runs that could not start or finish, the program gives up, because the machine is at fault.
const FAILURES_MAX: u32 = 3;

/// Real processes, real faults.
#[derive(Parser)]
#[command(name = "atlas-chaos", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Runs scenarios until the time is up.
    Run(Run),
    /// Lists the scenarios, and what this machine lacks for them.
    List,
    /// Kills durable programs, their workers and the leader at the boundaries of steps, until the time is up.
    Durable(Durable),
    /// Runs as an agent of the workload, which records what it does.
    #[command(hide = true)]
    Effect {
        /// The file of side effects.
        file: PathBuf,
    },
}

#[derive(Parser)]
struct Run {
    /// Minutes after which no new run begins.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// The first seed; defaults to one from the clock, and is printed.
    #[arg(long)]
    seed: Option<u64>,
    /// Only these scenarios.
    #[arg(long = "scenario")]
    scenarios: Vec<String>,
    /// Seconds with faults in one run.
    #[arg(long, default_value_t = 40)]
    seconds: u64,
    /// Number of clients in a run.
    #[arg(long, default_value_t = 4)]
    clients: usize,
    /// Folder for the data of runs; the data of a run with findings is kept.
    #[arg(long, default_value = "target/chaos")]
    folder: PathBuf,
    /// Appends the totals to this table.
    #[arg(long)]
    record: Option<PathBuf>,
    /// The commit in the table.
    #[arg(long, default_value = "unknown")]
    commit: String,
}

#[derive(Parser)]
struct Durable {
    /// Minutes after which no new run begins.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// The first seed; defaults to one from the clock, and is printed.
    #[arg(long)]
    seed: Option<u64>,
    /// Jobs of each language in a run.
    #[arg(long, default_value_t = 3)]
    families: usize,
    /// Folder for the data of runs; the data of a run with findings is kept.
    #[arg(long, default_value = "target/chaos")]
    folder: PathBuf,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().verb {
        Verb::Run(options) => run_all(&options),
        Verb::Durable(options) => run_durable(&options),
        Verb::List => {
            list();
            Ok(true)
        }
        Verb::Effect { file } => child(&file).map(|()| true).context("the side effect was not written"),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn list() {
    for scenario in Scenario::all() {
        match scenario.missing() {
            Some(reason) => println!("{} (not here: {reason})", scenario.name),
            None => println!("{}", scenario.name),
        }
    }
    for needs in [Needs::Namespaces, Needs::Compiler] {
        if let Some(reason) = missing(needs) {
            eprintln!("this machine lacks: {reason}");
        }
    }
}

fn run_all(options: &Run) -> Result<bool> {
    let env = Env::system();
    let first = options.seed.unwrap_or_else(|| env.clock.wall().0.unsigned_abs());
    let scenarios = chosen(&options.scenarios)?;
    let stop = stopped_by_signals(&env)?;
    let begun = env.clock.monotonic();
    let until = begun + Duration::from_secs_f64(options.minutes * 60.0);
    let (mut ledger, mut failed) = (Ledger::default(), 0);
    for number in 0.. {
        if number > 0 && (env.clock.monotonic() >= until || stop.load(Ordering::Relaxed)) {
            break;
        }
        let scenario = scenarios[number % scenarios.len()];
        let seed = first.wrapping_add(number as u64);
        println!("{} seed {seed}", scenario.name);
        let verdict = run(&Options {
            scenario,
            seed,
            faults_for: Duration::from_secs(options.seconds),
            clients: options.clients,
            folder: folder(&options.folder, scenario, seed),
            stop: Arc::clone(&stop),
        });
        let verdict = match verdict {
            Ok(verdict) => verdict,
            // The error says nothing about Atlas. If no run gets to run, give up early instead of repeating until the
            // time is up.
            Err(error) if failed + 1 == FAILURES_MAX => bail!("{} seed {seed} did not run: {error}", scenario.name),
            Err(error) => {
                failed += 1;
                RunReport::void(format!("it did not run: {error}"))
            }
        };
        println!("  {verdict}");
        if !verdict.is_good() {
            let Run { seconds, clients, .. } = options;
            println!(
                "  again: cargo xtask chaos --minutes 0 --scenario {} --seed {seed} --seconds {seconds} --clients {clients}",
                scenario.name
            );
        }
        ledger.add(&verdict);
    }
    if let Some(table) = &options.record {
        let took = env.clock.monotonic().saturating_sub(begun).as_secs() / 60;
        let names: Vec<&str> = scenarios.iter().map(|scenario| scenario.name).collect();
        let what = format!("{}; seeds {first} to {}", names.join(", "), first + ledger.runs() - 1);
        record(table, &format!("| {} | chaos | {what} | {took} | {} |\n", options.commit, ledger.cells()))?;
    }
    println!("faults: {}", ledger.classes());
    println!("{ledger}");
    Ok(ledger.is_good())
}

fn run_durable(options: &Durable) -> Result<bool> {
    let env = Env::system();
    let first = options.seed.unwrap_or_else(|| env.clock.wall().0.unsigned_abs());
    let mut languages = Vec::new();
    for language in durable_chaos::Language::ALL {
        match language.missing() {
            Some(reason) => eprintln!("skipped: {language:?}: {reason}"),
            None => languages.push(language),
        }
    }
    let until = env.clock.monotonic() + Duration::from_secs_f64(options.minutes * 60.0);
    let mut total = durable_chaos::Report::default();
    for seed in first.. {
        let (languages, families) = (languages.clone(), options.families);
        let folder = options.folder.join(format!("durable-{seed}-{}", std::process::id()));
        let begun = env.clock.monotonic();
        let report = durable_chaos::run(&durable_chaos::Options { seed, languages, families, folder });
        let report = report.map_err(|error| anyhow::anyhow!("seed {seed} did not run: {error}"))?;
        println!("seed {seed}, {} s: {report}", env.clock.monotonic().saturating_sub(begun).as_secs());
        total.add(report);
        if env.clock.monotonic() >= until {
            break;
        }
    }
    println!("{total}");
    Ok(total.is_good())
}

fn record(table: &Path, row: &str) -> Result<()> {
    let mut file = File::options().append(true).open(table).with_context(|| format!("no table {}", table.display()))?;
    Ok(file.write_all(row.as_bytes())?)
}

fn folder(within: &Path, scenario: &Scenario, seed: u64) -> PathBuf {
    within.join(format!("{}-{seed}-{}", scenario.name, std::process::id()))
}

/// The scenarios that can run here; prints the others with their reasons.
fn chosen(names: &[String]) -> Result<Vec<&'static Scenario>> {
    let mut chosen = Vec::new();
    let named = |name: &String| Scenario::named(name).with_context(|| format!("there is no scenario \"{name}\""));
    let wanted: Vec<_> = match names {
        [] => Scenario::all().iter().collect(),
        names => names.iter().map(named).collect::<Result<_>>()?,
    };
    for scenario in wanted {
        match scenario.missing() {
            Some(reason) => eprintln!("skipped: {}: {reason}", scenario.name),
            None => chosen.push(scenario),
        }
    }
    if chosen.is_empty() {
        bail!("no scenario can run on this machine");
    }
    Ok(chosen)
}

/// Becomes true on SIGINT and SIGTERM; the current run then ends early and is checked.
fn stopped_by_signals(env: &Env) -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let told = Arc::clone(&stop);
    let env = env.clone();
    runtime.block_on(async {
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        env.spawn("signals", async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            told.store(true, Ordering::Relaxed);
        });
        anyhow::Ok(())
    })?;
    // The runtime must listen for signals as long as the process runs, so it is never dropped.
    std::mem::forget(runtime);
    Ok(stop)
}
