//! Many seeds, each a cluster's life with faults; all properties are checked throughout.

use atlas_sim::{Coverage, Options, run_checked};

const SEEDS: u64 = 200;

/// The seed of `ATLAS_SEED`, or the first: for repeating a failure. With `ATLAS_TRACE` every step is printed.
#[test]
#[expect(clippy::disallowed_methods, reason = "what to repeat comes from whoever runs the test")]
#[expect(clippy::print_stdout, reason = "the trace is for whoever asks for it")]
fn one_seed() {
    let seed = std::env::var("ATLAS_SEED").map_or(0, |seed| seed.parse().expect("ATLAS_SEED is a number"));
    let trace = std::env::var("ATLAS_TRACE").is_ok();
    if let Err(failure) = run_checked(&Options { trace, ..Options::of(seed) }) {
        failure.trace.iter().for_each(|line| println!("{line}"));
        panic!("{failure}");
    }
}

#[test]
fn two_hundred_seeds_hold_and_cover_what_they_should() {
    // Two halves at once: a seed takes a core, and does not care for the others.
    let half = |first: u64| {
        let mut coverage = Coverage::default();
        for seed in (first..SEEDS).step_by(2) {
            match run_checked(&Options::of(seed)) {
                Ok(report) => coverage.merge(&report.coverage),
                Err(failure) => panic!("{failure}"),
            }
        }
        coverage
    };
    let coverage = std::thread::scope(|scope| {
        let odd = scope.spawn(|| half(1));
        let mut coverage = half(0);
        coverage.merge(&odd.join().expect("the other half holds"));
        coverage
    });
    assert_eq!(coverage.campaign_shortfall(), None, "the campaign is void: {coverage:#?}");
}
