//! The campaign: a range of seeds, two at a time, and a line about them for the ledger; or the mistakes made on purpose, and which seed
//! catches each.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use atlas_sim::Coverage;
use atlas_turmoil::{Bug, Options, first_caught, run_checked};

const USAGE: &str = "usage: atlas-turmoil FROM..TO [THREADS] | bugs";

/// A mistake must be caught within so many seeds.
const BUG_SEEDS: u64 = 100;

/// What a range of seeds came to.
#[derive(Default)]
struct Sum {
    coverage: Coverage,
    runs: u64,
    void: Vec<u64>,
    failed: Vec<u64>,
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the ledger of a campaign is its output")]
#[expect(clippy::disallowed_methods, reason = "how long it took is a matter of the real clock")]
fn main() -> ExitCode {
    // What panics is told with its seed; the rest of the words would drown that.
    std::panic::set_hook(Box::new(|_| {}));
    if std::env::args().nth(1).as_deref() == Some("bugs") {
        return bugs();
    }
    let Some((from, to, threads)) = arguments(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let begun = Instant::now();
    let next = AtomicU64::new(from);
    let sum = Mutex::new(Sum::default());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= to {
                        return;
                    }
                    let outcome = run_checked(&Options::of(seed));
                    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
                    sum.runs += 1;
                    match outcome {
                        Ok(report) => sum.coverage.merge(&report.coverage),
                        Err(failure) => {
                            eprintln!("{failure}");
                            if failure.void { sum.void.push(seed) } else { sum.failed.push(seed) }
                        }
                    }
                }
            });
        }
    });
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{}", line(&sum, (from, to), begun.elapsed().as_secs() / 60));
    if sum.failed.is_empty() && sum.void.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[expect(clippy::print_stdout, reason = "what catches a mistake is the output")]
fn bugs() -> ExitCode {
    let mut missed = false;
    for bug in Bug::ALL {
        match first_caught(bug, 0..BUG_SEEDS, Options::of) {
            Some((seed, failure)) => println!("{bug:?} by seed {seed}: {}", failure.text.lines().next().unwrap_or("")),
            None => {
                missed = true;
                println!("{bug:?} is not caught within {BUG_SEEDS} seeds");
            }
        }
    }
    if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The part of the ledger's row behind the commit.
fn line(sum: &Sum, (from, to): (u64, u64), minutes: u64) -> String {
    let Sum { coverage, runs, void, failed } = sum;
    let faults: Vec<_> = atlas_turmoil::FAULTS
        .iter()
        .map(|fault| (fault, coverage.of(fault)))
        .filter(|(_, n)| *n > 0)
        .map(|(fault, n)| format!("{fault} {n}"))
        .collect();
    let operations = coverage.of("operations in histories");
    format!(
        "simulation | seeds {from} to {} ({runs} runs) | {minutes} | {operations} | {} | {} | {}",
        to - 1,
        faults.join(", "),
        void.len(),
        failed.len()
    )
}

fn arguments(mut words: impl Iterator<Item = String>) -> Option<(u64, u64, u64)> {
    let range = words.next()?;
    let (from, to) = range.split_once("..")?;
    let threads = words.next().map_or(Some(2), |threads| threads.parse().ok())?;
    Some((from.parse().ok()?, to.parse().ok()?, threads))
}
