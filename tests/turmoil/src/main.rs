//! The campaign: a range of seeds, two at a time, and a line about them for the ledger; or the mistakes made on purpose, and which seed
//! catches each.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use atlas_sim::Coverage;
use atlas_turmoil::{Bug, Options, first_caught, run_checked};

const USAGE: &str = "usage: atlas-turmoil FROM..TO|bugs [THREADS]";

/// A mistake must be caught within so many seeds.
const BUG_SEEDS: u64 = 40;

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
    let words: Vec<_> = std::env::args().skip(1).collect();
    let threads = words.get(1).map_or(Some(2), |threads| threads.parse::<u64>().ok());
    let (what, Some(threads)) = (words.first().map(String::as_str), threads) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if what == Some("bugs") {
        return bugs(threads);
    }
    let Some((from, to)) = what.and_then(range) else {
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
fn bugs(threads: u64) -> ExitCode {
    let (next, caught) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(bug) = Bug::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match first_caught(*bug, 0..BUG_SEEDS, Options::of) {
                        Some((seed, failure)) => {
                            caught.fetch_add(1, Ordering::Relaxed);
                            println!("{bug:?} by seed {seed}: {}", failure.text.lines().next().unwrap_or(""));
                        }
                        None => println!("{bug:?} is not caught within {BUG_SEEDS} seeds"),
                    }
                }
            });
        }
    });
    let (caught, all) = (caught.into_inner(), Bug::ALL.len());
    println!("{caught} of {all} deliberate bugs caught");
    if caught == all { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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

fn range(words: &str) -> Option<(u64, u64)> {
    let (from, to) = words.split_once("..")?;
    Some((from.parse().ok()?, to.parse().ok()?))
}
