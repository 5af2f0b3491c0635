//! The campaign: runs a range of seeds in slices with a row of the ledger for each, or the deliberate bugs with the
//! seed that catches each.

use std::fs::File;
use std::io::{self, Write as _};
use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use atlas_sim::Coverage;
use atlas_turmoil::{Bug, Options, first_caught, run_checked};

const USAGE: &str = "usage: atlas-turmoil FROM..TO|bugs|BUG [--threads N] [--slice N] [--record TABLE --commit COMMIT]";

/// The number of seeds within which a bug must be caught.
const BUG_SEEDS: u64 = 40;

/// The seeds or bugs to run.
enum What {
    Seeds(Range<u64>),
    Bugs(Vec<Bug>),
}

/// The requested work.
struct Task {
    what: What,
    threads: u64,
    slice: u64,
    /// The file that ends with the ledger's table, if rows are to be appended.
    table: Option<String>,
    commit: String,
}

/// The result of a range of seeds.
#[derive(Default)]
struct Sum {
    coverage: Coverage,
    runs: u64,
    void: Vec<u64>,
    failed: Vec<u64>,
}

#[expect(clippy::print_stderr, reason = "whoever asks for nothing known is told what there is")]
fn main() -> ExitCode {
    // Panics are reported with their seed. The default panic message would hide that.
    std::panic::set_hook(Box::new(|_| {}));
    let Some(task) = task(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let outcome = match &task.what {
        What::Seeds(seeds) => campaign(seeds.clone(), &task),
        What::Bugs(all) => Ok(bugs(all, task.threads)),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("could not append to the ledger: {error}");
            ExitCode::from(2)
        }
    }
}

fn task(mut words: impl Iterator<Item = String>) -> Option<Task> {
    let word = words.next()?;
    let what = match range(&word) {
        Some(seeds) => What::Seeds(seeds),
        None if word == "bugs" => What::Bugs(Bug::ALL.to_vec()),
        None => What::Bugs(vec![*Bug::ALL.iter().find(|bug| format!("{bug:?}") == word)?]),
    };
    let mut task = Task { what, threads: 2, slice: u64::MAX, table: None, commit: String::new() };
    while let Some(word) = words.next() {
        let value = words.next()?;
        match word.as_str() {
            "--threads" => task.threads = value.parse().ok()?,
            "--slice" => task.slice = value.parse().ok().filter(|slice| *slice > 0)?,
            "--record" => task.table = Some(value),
            "--commit" => task.commit = value,
            _ => return None,
        }
    }
    Some(task)
}

fn range(words: &str) -> Option<Range<u64>> {
    let (from, to) = words.split_once("..")?;
    let (from, to) = (from.parse().ok()?, to.parse().ok()?);
    (from < to).then_some(from..to)
}

/// Runs slice after slice. True if no invariant was violated and no run was void.
#[expect(clippy::print_stdout, reason = "the rows of a campaign are its output")]
#[expect(clippy::disallowed_methods, reason = "how long it took is a matter of the real clock")]
fn campaign(seeds: Range<u64>, task: &Task) -> io::Result<bool> {
    let mut good = true;
    let mut next = seeds.start;
    while next < seeds.end {
        let slice = next..seeds.end.min(next.saturating_add(task.slice));
        next = slice.end;
        let begun = Instant::now();
        let sum = run_slice(slice.clone(), task.threads);
        good &= sum.failed.is_empty() && sum.void.is_empty();
        let row = row(&sum, &slice, begun.elapsed().as_secs().div_ceil(60));
        println!("{row}");
        if let Some(table) = &task.table {
            let row = format!("| {} | {row} |\n", task.commit);
            File::options().append(true).open(table)?.write_all(row.as_bytes())?;
        }
    }
    Ok(good)
}

#[expect(clippy::print_stderr, reason = "a failure is told when it is found")]
fn run_slice(slice: Range<u64>, threads: u64) -> Sum {
    let next = AtomicU64::new(slice.start);
    let sum = Mutex::new(Sum::default());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= slice.end {
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
    sum.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs bug after bug. True if all are caught.
#[expect(clippy::print_stdout, reason = "what catches a mistake is the output")]
fn bugs(all: &[Bug], threads: u64) -> bool {
    let (next, caught) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(bug) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
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
    let (caught, all) = (caught.into_inner(), all.len());
    println!("{caught} of {all} deliberate bugs caught");
    caught == all
}

/// The part of the ledger's row after the commit.
fn row(sum: &Sum, slice: &Range<u64>, minutes: u64) -> String {
    let Sum { coverage, runs, void, failed } = sum;
    let faults: Vec<_> = atlas_turmoil::FAULTS
        .iter()
        .map(|fault| (fault, coverage.of(fault)))
        .filter(|(_, n)| *n > 0)
        .map(|(fault, n)| format!("{fault} {n}"))
        .collect();
    let operations = coverage.of("operations in histories");
    let (from, to, faults) = (slice.start, slice.end - 1, faults.join(", "));
    format!(
        "simulation with openraft | seeds {from} to {to} ({runs} runs) | {minutes} | {operations} | {faults} | {} | {}",
        void.len(),
        failed.len()
    )
}
