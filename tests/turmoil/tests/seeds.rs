//! Many seeds, each a cluster's life with faults; all that must hold is checked on the way.

use atlas_turmoil::{Options, run_checked};

/// The seed of `ATLAS_SEED`, or the first: for repeating a failure. With `ATLAS_TRACE` all that was seen is printed.
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
