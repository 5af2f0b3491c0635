//! Triggers fire for each of their times once, whatever becomes of leaders. The full number: `cargo run -p atlas-sim -- --ticks 10000`.

use atlas_sim::{Ticked, Ticks, run_ticks};

/// Each with 1,000 times.
const SEEDS: u64 = 3;

#[test]
fn no_time_fires_twice_and_none_is_missing() {
    let mut seen = Ticked::default();
    for seed in 0..SEEDS {
        match run_ticks(&Ticks::of(seed)) {
            Ok(report) => seen.add(&report),
            Err(violation) => panic!("{violation}"),
        }
    }
    assert!(seen.ticks >= 900 * SEEDS && seen.leader_changes >= 40 * SEEDS, "void: {seen:?}");
    let rare = [seen.lost, seen.inherited, seen.stale, seen.restarts, seen.clock_jumps, seen.invariant_checks];
    assert!(rare.iter().all(|n| *n > 0), "void: {seen:?}");
}

#[test]
fn a_firing_beside_the_trigger_is_found() {
    let found = (0..5).find_map(|seed| run_ticks(&Ticks { unchecked: true, ..Ticks::of(seed) }).err());
    let found = found.expect("a violation");
    assert!(found.contains("fired twice") || found.contains("is missing"), "{found}");
}
