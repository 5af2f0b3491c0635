//! A checker that has never failed is not trusted: mistakes made on purpose must be caught. Those here are caught within a few seeds; the
//! others are tried by `atlas-turmoil bugs`, which takes longer than a build can wait.

use atlas_turmoil::{Bug, Options, first_caught};

/// Within so many seeds.
const SEEDS: u64 = 6;

#[test]
fn a_disk_that_lies_about_its_syncs_is_caught() {
    caught(Bug::LogNotSynced);
}

#[test]
fn a_directory_that_was_not_synced_is_caught() {
    caught(Bug::SegmentNameNotSynced);
}

fn caught(bug: Bug) {
    let found = first_caught(bug, 0..SEEDS, Options::of);
    assert!(found.is_some(), "{bug:?} is not caught within {SEEDS} seeds");
}
