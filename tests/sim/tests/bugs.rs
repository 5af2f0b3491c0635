//! Checkers must be able to fail: each deliberate bug must be caught.

use atlas_sim::{Bug, Options, run};

/// Within so many seeds.
const SEEDS: u64 = 300;

#[test]
fn every_mistake_is_caught() {
    // Half of them on another core.
    let (some, others) = Bug::ALL.split_at(Bug::ALL.len() / 2);
    let missed = std::thread::scope(|scope| {
        let others = scope.spawn(|| missed(others));
        let mut missed = missed(some);
        missed.extend(others.join().expect("the other half is tried"));
        missed
    });
    assert!(missed.is_empty(), "not caught within {SEEDS} seeds: {missed:?}");
}

#[expect(clippy::print_stdout, reason = "how soon a mistake is caught is worth knowing")]
fn missed(bugs: &[Bug]) -> Vec<Bug> {
    let mut missed = Vec::new();
    for &bug in bugs {
        let caught = (0..SEEDS).find_map(|seed| {
            let failure = run(&Options::of(seed).with_bug(bug)).err()?;
            (!failure.void).then_some((seed, failure))
        });
        match caught {
            Some((seed, failure)) => println!("{bug:?} by seed {seed}: {}", failure.text.lines().next().unwrap_or("")),
            None => missed.push(bug),
        }
    }
    missed
}
