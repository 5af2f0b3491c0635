//! The soak: new seeds until the time is over, or until one fails.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use atlas_sim::{Coverage, Options, Ticked, Ticks, run_checked, run_ticks};

const USAGE: &str = "usage: atlas-sim [--minutes N | --ticks N] [--seed FIRST]";

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the ledger of a soak is its output")]
#[expect(clippy::disallowed_methods, reason = "how long to run is a matter of the real clock")]
fn main() -> ExitCode {
    let Some(Arguments { minutes, ticks, first }) = arguments(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if ticks > 0 {
        return fire(ticks, first);
    }
    let until = Instant::now() + Duration::from_secs(60 * minutes);
    let mut coverage = Coverage::default();
    let mut seed = first;
    while Instant::now() < until {
        match run_checked(&Options::of(seed)) {
            Ok(report) => coverage.merge(&report.coverage),
            Err(failure) => {
                eprintln!("{failure}");
                return ExitCode::FAILURE;
            }
        }
        seed += 1;
    }
    println!("seeds {first} to {} hold: {coverage:?}", seed.saturating_sub(1));
    ExitCode::SUCCESS
}

/// Lets triggers fire so often, over as many seeds as that takes.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the ledger of a soak is its output")]
fn fire(ticks: u64, first: u64) -> ExitCode {
    let mut seen = Ticked::default();
    let mut seed = first;
    while seen.ticks < ticks {
        match run_ticks(&Ticks::of(seed)) {
            Ok(report) => seen.add(&report),
            Err(violation) => {
                eprintln!("{violation}");
                return ExitCode::FAILURE;
            }
        }
        seed += 1;
    }
    println!("seeds {first} to {} hold: {seen:?}", seed - 1);
    ExitCode::SUCCESS
}

struct Arguments {
    minutes: u64,
    ticks: u64,
    first: u64,
}

fn arguments(mut words: impl Iterator<Item = String>) -> Option<Arguments> {
    let mut found = Arguments { minutes: 10, ticks: 0, first: 0 };
    while let Some(word) = words.next() {
        let value = words.next()?.parse().ok()?;
        match word.as_str() {
            "--minutes" => found.minutes = value,
            "--ticks" => found.ticks = value,
            "--seed" => found.first = value,
            _ => return None,
        }
    }
    Some(found)
}
