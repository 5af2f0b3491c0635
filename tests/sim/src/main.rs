//! The soak: new seeds until the time is over, or until one fails.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use atlas_sim::{Coverage, Options, run_checked};

const USAGE: &str = "usage: atlas-sim [--minutes N] [--seed FIRST]";

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the ledger of a soak is its output")]
#[expect(clippy::disallowed_methods, reason = "how long to run is a matter of the real clock")]
fn main() -> ExitCode {
    let Some((minutes, first)) = arguments(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
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

fn arguments(mut words: impl Iterator<Item = String>) -> Option<(u64, u64)> {
    let (mut minutes, mut first) = (10, 0);
    while let Some(word) = words.next() {
        let value = words.next()?.parse().ok()?;
        match word.as_str() {
            "--minutes" => minutes = value,
            "--seed" => first = value,
            _ => return None,
        }
    }
    Some((minutes, first))
}
