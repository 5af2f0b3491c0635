//! Runs many seeds, each of which is one cluster with faults. All invariants are checked during the run.

use atlas_sim::Coverage;
use atlas_turmoil::{Options, build_shortfall, run_checked};

/// The number of seeds in a build. A seed takes one to two seconds of a core without optimisation.
const SEEDS: u64 = 200;

/// Runs the seed of `ATLAS_SEED`, or the first one, to repeat a failure. With `ATLAS_TRACE` all observations are
/// printed.
#[test]
#[expect(clippy::print_stdout, reason = "the trace is for whoever asks for it")]
fn one_seed() {
    let seed = std::env::var("ATLAS_SEED").map_or(0, |seed| seed.parse().expect("ATLAS_SEED is a number"));
    let trace = std::env::var("ATLAS_TRACE").is_ok();
    let show = |lines: &[String]| lines.iter().filter(|_| trace).for_each(|line| println!("{line}"));
    match run_checked(&Options::of(seed)) {
        Ok(report) => {
            show(&report.trace);
            println!("{:#?}", report.coverage);
        }
        Err(failure) => {
            show(&failure.trace);
            panic!("{failure}");
        }
    }
}

#[test]
fn the_seeds_of_a_build_hold_and_cover_what_they_should() {
    // The two halves run in parallel: a seed needs one core and does not depend on the others.
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
    assert_eq!(build_shortfall(&coverage), None, "the build's runs are void: {coverage:#?}");
}
